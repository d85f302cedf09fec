package modeltest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"net/http"
)

// maxRandomPiece is the longest piece of a stream that is cut at random.
const maxRandomPiece = 40

// pieces sends a body in flushed pieces, and holds it or breaks it off at the byte that its reply names. Its methods
// report whether the body goes on.
type pieces struct {
	ctx     context.Context
	w       http.ResponseWriter
	control *http.ResponseController
	reply   Reply
	rand    *rand.Rand // nil unless pieces are cut at random
	rest    bytes.Buffer
	sent    int
	held    bool
}

func newPieces(ctx context.Context, w http.ResponseWriter, reply Reply) *pieces {
	p := &pieces{ctx: ctx, w: w, control: http.NewResponseController(w), reply: reply}
	if reply.Seed != 0 {
		p.rand = rand.New(rand.NewPCG(reply.Seed, 0))
	}
	return p
}

// write sends text, but for what is less than a piece.
func (p *pieces) write(text string) bool {
	p.rest.WriteString(text)
	for p.rest.Len() > 0 {
		size := p.rest.Len()
		switch {
		case p.rand != nil:
			size = 1 + p.rand.IntN(maxRandomPiece)
		case p.reply.Split > 0:
			size = p.reply.Split
		}
		if size > p.rest.Len() {
			return true
		}
		if !p.send(p.rest.Next(size)) {
			return false
		}
	}
	return true
}

// flush sends what is left.
func (p *pieces) flush() bool { return p.send(p.rest.Next(p.rest.Len())) }

// end sends what is left and ends the body, or breaks it off.
func (p *pieces) end(broken bool) {
	if p.flush() && (broken || p.reply.CutAtByte > 0) {
		p.breakOff()
	}
}

// send sends a piece, up to where the reply holds or ends.
func (p *pieces) send(piece []byte) bool {
	if at := p.reply.HoldAtByte - p.sent; p.reply.Hold != nil && p.reply.HoldAtByte > 0 && !p.held && at <= len(piece) {
		p.held = true
		if !p.send(piece[:at]) || !p.hold() {
			return false
		}
		piece = piece[at:]
	}
	if at := p.reply.CutAtByte - p.sent; p.reply.CutAtByte > 0 && at <= len(piece) {
		p.put(piece[:max(at, 0)])
		p.breakOff()
		return false
	}
	p.put(piece)
	return true
}

func (p *pieces) put(piece []byte) {
	n, _ := p.w.Write(piece) // if the client is gone, the next wait sees it
	p.sent += n
	_ = p.control.Flush()
}

// hold waits until the test lets the body go on.
func (p *pieces) hold() bool {
	select {
	case <-p.reply.Hold:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// breakOff breaks the connection.
func (p *pieces) breakOff() {
	if p.reply.Reset {
		if conn, _, err := p.control.Hijack(); err == nil {
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // what closes it then is a reset
			}
			_ = conn.Close()
			return
		}
	}
	panic(http.ErrAbortHandler) // breaks the connection; the server expects it
}
