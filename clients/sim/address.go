package sim

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	throwbar "throwbar.dev/throwbar/clients/go"
)

// The rule for addresses that a command may open or load: a bare domain gets https; only http and https; no
// credentials. The table in clients/es/testdata/urls.json holds for every implementation.

var (
	schemeForm   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):`)
	hostAndPort  = regexp.MustCompile(`^[^/?#:@]+:[0-9]{1,5}([/?#]|$)`)
	absoluteForm = regexp.MustCompile(`^(?i:https?)://[^/?#]`)
	hostForm     = regexp.MustCompile(`^[a-z0-9_.-]+$`)
)

// maxHost is the length of the longest host that is looked at. A name holds 253 letters; written in another script they
// take more bytes, and the conversion takes longer than they are many.
const maxHost = 1024

// checkAddress says in which form an address may be opened, or why it may not.
func checkAddress(input string) (string, error) {
	text := strings.Trim(input, " ")
	if text == "" {
		return "", refusedAddress("the address is empty")
	}
	scheme := ""
	if m := schemeForm.FindStringSubmatch(text); m != nil && !hostAndPort.MatchString(text) {
		scheme = strings.ToLower(m[1])
	}
	if scheme != "" && scheme != "http" && scheme != "https" {
		return "", refusedAddress("only http and https addresses can be opened")
	}
	before := text
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		before = text[:i]
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, controlOrSpace) || strings.Contains(before, `\`) ||
		(scheme != "" && !absoluteForm.MatchString(text)) {
		return "", errNoAddress()
	}
	if scheme == "" {
		if !bareDomain(text) {
			return "", errNoAddress()
		}
		scheme, text = "https", "https://"+text
	}
	return written(scheme, text[len(scheme)+len("://"):])
}

func refusedAddress(why string) error { return throwbar.Errorf(throwbar.CodeRefused, "%s", why) }

func errNoAddress() error {
	return refusedAddress("this is no web address; give a domain such as example.com, or a full address")
}

func controlOrSpace(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }

func bareDomain(text string) bool {
	host := text
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:i]
	}
	return name == "localhost" || strings.Contains(name, ".") || strings.HasPrefix(name, "[") || strings.Contains(host, "@")
}

// written brings what follows the scheme into the form in which a browser shows it.
func written(scheme, rest string) (string, error) {
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if strings.Contains(authority, "@") {
		return "", refusedAddress("the address holds a user name or password; remove it")
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		host, port = authority[:i], authority[i+1:]
	}
	host, ok := writtenHost(host)
	if !ok {
		return "", errNoAddress()
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", errNoAddress()
		}
		if usual := map[string]uint64{"http": 80, "https": 443}[scheme]; n != usual {
			host += ":" + strconv.FormatUint(n, 10)
		}
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return scheme + "://" + host + escaped(path), nil
}

func writtenHost(host string) (string, bool) {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return "[" + addr.String() + "]", ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	if len(host) > maxHost {
		return "", false
	}
	profile := idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))
	ascii, err := profile.ToASCII(host)
	if err != nil || !hostForm.MatchString(ascii) || strings.Trim(ascii, ".") == "" {
		return "", false
	}
	again, err := profile.ToASCII(ascii) // what is written has to read back
	return ascii, err == nil && again == ascii
}

// escaped writes what a browser escapes in paths and queries.
func escaped(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c >= 0x7f || c == '"' || c == '<' || c == '>' {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c), 16)))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
