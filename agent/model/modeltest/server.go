package modeltest

import "net/http/httptest"

// TB is the part of testing.TB that a server needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Server is a Handler that listens on the loopback interface until its test ends.
type Server struct {
	*Handler
	// URL is the base URL for clients, with the version path.
	URL string
}

// NewServer starts a server that wants [Key].
func NewServer(t TB, script ...Step) *Server {
	t.Helper()
	return NewServerWith(t, Config{}, script...)
}

// NewServerWith starts a server. When the test ends, violations that were not taken and steps that were not used are
// errors.
func NewServerWith(t TB, config Config, script ...Step) *Server {
	t.Helper()
	handler := NewHandler(config, script...)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		for _, v := range handler.Violations() {
			t.Errorf("model server: %v", v)
		}
		if n := handler.Remaining(); n > 0 {
			t.Errorf("model server: %d steps of the script were not used", n)
		}
	})
	return &Server{Handler: handler, URL: server.URL + "/v1"}
}
