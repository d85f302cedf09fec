package rpc

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"throwbar.dev/throwbar/server/fault"
)

const defaultPage = 100

// Cursor is a place in a list by time, newest first; the zero one is its beginning.
type Cursor struct {
	Time time.Time
	ID   string
}

// size is the number of rows that a caller wants. The rules bound it.
func size(asked uint32) int {
	if asked == 0 {
		return defaultPage
	}
	return int(asked)
}

// offset reads a page token of a list that is counted through.
func offset(token string) (int, error) {
	if token == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(token, "o"))
	if err != nil || n < 0 || !strings.HasPrefix(token, "o") {
		return 0, badToken(token)
	}
	return n, nil
}

// nextOffset is the token of the page after the one that begins at from and has n of total rows.
func nextOffset(from, n, total int) string {
	if n == 0 || from+n >= total {
		return ""
	}
	return "o" + strconv.Itoa(from+n)
}

// keyset reads a page token of a list by time, newest first.
func keyset(token string) (time.Time, string, error) {
	if token == "" {
		return time.Time{}, "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return time.Time{}, "", badToken(token)
	}
	millis, id, ok := strings.Cut(string(raw), " ")
	n, err := strconv.ParseInt(millis, 10, 64)
	if !ok || err != nil {
		return time.Time{}, "", badToken(token)
	}
	return time.UnixMilli(n), id, nil
}

// nextKeyset is the token of the page after the row with this time and id.
func nextKeyset(t time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", t.UnixMilli(), id))
}

func badToken(token string) error {
	return fault.New(fault.Invalid, "%q is no page token of this list: use the one of the answer before, or none", token)
}
