package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/catalog"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

const (
	catalogueWait = 5 * time.Second
	maxImage      = 16 << 20
	unionName     = protoreflect.FullName("throwbar.command.v1.Action")
)

// known is the catalogue that the program works with.
type known struct {
	*catalog.Catalogue

	why error // why it is not the server's own; nil if it is
}

// undo is the command that undoes another; false if there is none.
func (k *known) undo(e *catalog.Entry) (*catalog.Entry, bool) {
	d, err := k.Files().FindDescriptorByName(unionName)
	union, ok := d.(protoreflect.MessageDescriptor)
	if err != nil || !ok || e.Command.GetUndo() == "" {
		return nil, false
	}
	member := union.Fields().ByName(protoreflect.Name(e.Command.GetUndo()))
	if member == nil {
		return nil, false
	}
	return k.Lookup(member.JSONName())
}

// catalogue is the server's catalogue. Where the server does not hand it over, it is the last one of that server, else
// the program's own: good enough for help.
func (p *program) catalogue(ctx context.Context) (*known, error) {
	if p.known != nil {
		return p.known, nil
	}
	kept := p.keptImage()
	image, why := p.fetchImage(ctx, kept)
	if why != nil {
		image = kept
	}
	c, err := catalog.New(image)
	if err != nil {
		if why == nil {
			why = fmt.Errorf("read the server's catalogue: %w", err)
		}
		if c, err = catalog.New(p.Image); err != nil {
			return nil, fmt.Errorf("read the program's own catalogue: %w", err)
		}
	}
	p.known = &known{Catalogue: c, why: why}
	return p.known, nil
}

// fetchImage asks the server for its descriptors; it answers without them if it has the same as kept.
func (p *program) fetchImage(ctx context.Context, kept []byte) ([]byte, error) {
	s, err := p.api()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, catalogueWait)
	defer cancel()
	answer, err := s.Catalogue.GetCatalogue(ctx, &controlv1.GetCatalogueRequest{Digest: digest(kept)})
	if err != nil {
		return nil, fmt.Errorf("get the catalogue: %w", err)
	}
	if len(answer.GetDescriptors()) == 0 {
		return kept, nil
	}
	if digest(answer.GetDescriptors()) != digest(p.Image) {
		if err := p.keep(answer.GetDescriptors()); err != nil {
			p.warn("%v", err) // the next run fetches it again
		}
	}
	return answer.GetDescriptors(), nil
}

func digest(image []byte) string {
	sum := sha256.Sum256(image)
	return hex.EncodeToString(sum[:])
}

// The cache has one file for each server, named by its address. What is in it proves itself: it counts only if the
// server confirms its digest.
func (p *program) cacheFile() string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(p.flags.server))
	return filepath.Join(cacheDir(p.Env), "catalogue", name+"-"+digest([]byte(p.flags.server))[:8]+".binpb")
}

// keptImage is the image that was fetched last, else the program's own.
func (p *program) keptImage() []byte {
	f, err := os.Open(p.cacheFile())
	if err != nil {
		return p.Image
	}
	defer func() { _ = f.Close() }() // only read from
	image, err := io.ReadAll(io.LimitReader(f, maxImage))
	if err != nil || len(image) == 0 {
		return p.Image
	}
	return image
}

// keep writes an image to the cache, whole or not at all, for this user only.
func (p *program) keep(image []byte) (err error) {
	path := p.cacheFile()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep the catalogue: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*") // has mode 0600
	if err != nil {
		return fmt.Errorf("keep the catalogue: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // nothing points to it
		}
	}()
	_, err = f.Write(image)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keep the catalogue: %w", err)
	}
	return nil
}
