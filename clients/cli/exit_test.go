package cli_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"github.com/spf13/cobra"

	"throwbar.dev/throwbar/clients/cli"
	commandv1 "throwbar.dev/throwbar/gen/go/throwbar/command/v1"
	controlv1 "throwbar.dev/throwbar/gen/go/throwbar/control/v1"
)

// TestExitCodes has every way in which a call can end.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	tab := laptop + "_tb1aa-1"
	for name, row := range map[string]struct {
		dispatch func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error)
		code     int
		says     string
	}{
		"ok":                 {closed(okStatus, okStatus), 0, "ok"},
		"replaced item":      {closed(okStatus, commandv1.ItemStatus_ITEM_STATUS_REPLACED), 0, "replaced"},
		"some items":         {closed(okStatus, goneStatus), 7, "partly done"},
		"no item":            {closed(goneStatus, goneStatus), 1, "not done"},
		"offline":            {outcome(commandv1.ErrorCode_ERROR_CODE_OFFLINE), 3, "offline: because"},
		"expired":            {outcome(commandv1.ErrorCode_ERROR_CODE_EXPIRED), 4, "expired: because"},
		"approval timed out": {outcome(commandv1.ErrorCode_ERROR_CODE_APPROVAL_TIMED_OUT), 4, "approval timed out: because"},
		"cancelled":          {outcome(commandv1.ErrorCode_ERROR_CODE_CANCELLED), 130, "cancelled: because"},
		"not found":          {outcome(commandv1.ErrorCode_ERROR_CODE_NOT_FOUND), 1, "not found: because"},
		"unsupported":        {outcome(commandv1.ErrorCode_ERROR_CODE_UNSUPPORTED), 1, "unsupported: because"},
		"invalid":            {outcome(commandv1.ErrorCode_ERROR_CODE_INVALID), 2, "invalid: because"},
		"refused":            {outcome(commandv1.ErrorCode_ERROR_CODE_REFUSED), 5, "refused: because"},
		"denied":             {outcome(commandv1.ErrorCode_ERROR_CODE_DENIED), 5, "denied: because"},
		"interrupted":        {outcome(commandv1.ErrorCode_ERROR_CODE_INTERRUPTED), 1, "interrupted: because"},
		"failed":             {outcome(commandv1.ErrorCode_ERROR_CODE_FAILED), 1, "failed: because"},
		"busy":               {outcome(commandv1.ErrorCode_ERROR_CODE_BUSY), 1, "busy: because"},
		"two the same":       {outcome(commandv1.ErrorCode_ERROR_CODE_OFFLINE, commandv1.ErrorCode_ERROR_CODE_OFFLINE), 3, "offline"},
		"two different":      {outcome(commandv1.ErrorCode_ERROR_CODE_OFFLINE, commandv1.ErrorCode_ERROR_CODE_DENIED), 1, "offline"},
		"another's result":   {otherResult, 1, "is not one of closeTabs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(f *fake) { f.onDispatch = row.dispatch })
			f.run(t, "call", "closeTabs", "--tab-ids", tab+","+tab).check(t, row.code, row.says)
			f.run(t, "call", "closeTabs", "--tab-ids", tab+","+tab, "-o", "json").check(t, row.code)
		})
	}
}

func outcome(codes ...commandv1.ErrorCode) func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	return func(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
		answer := &controlv1.DispatchResponse{}
		for _, code := range codes {
			answer.Outcomes = append(answer.Outcomes, &controlv1.DeviceOutcome{
				DeviceId: laptop, Outcome: &controlv1.DeviceOutcome_Error{Error: &commandv1.CommandError{Code: code, Message: "because"}},
			})
		}
		return answer, nil
	}
}

func otherResult(*controlv1.DispatchRequest) (*controlv1.DispatchResponse, error) {
	return &controlv1.DispatchResponse{Outcomes: []*controlv1.DeviceOutcome{{
		DeviceId: laptop, Outcome: &controlv1.DeviceOutcome_Result{Result: &commandv1.Result{
			Kind: &commandv1.Result_OpenTab{OpenTab: &commandv1.OpenTab_Result{}},
		}},
	}}}, nil
}

// TestExitCodesOfCalls has every way in which the server can refuse a call, by a typed method and by a descriptor's.
func TestExitCodesOfCalls(t *testing.T) {
	t.Parallel()
	for code, want := range map[connect.Code]int{
		connect.CodeInvalidArgument: 2, connect.CodeUnavailable: 3, connect.CodeDeadlineExceeded: 4,
		connect.CodePermissionDenied: 5, connect.CodeFailedPrecondition: 5, connect.CodeUnauthenticated: 6,
		connect.CodeNotFound: 1, connect.CodeInternal: 1, connect.CodeResourceExhausted: 1, connect.CodeCanceled: 130,
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			f := newFake(t, func(f *fake) { f.fail = connect.NewError(code, "because") })
			for _, words := range []string{"devices", "query listWindows", "chat hello", "watch", "history", "token list"} {
				e := f.run(t, strings.Fields(words)...)
				e.check(t, want, "because")
				if strings.Count(e.err, "\n") != 1 {
					t.Errorf("%s: not one line: %q", words, e.err)
				}
			}
		})
	}
	detail, err := connectproto.NewErrorDetail(&commandv1.CommandError{
		Code: commandv1.ErrorCode_ERROR_CODE_DENIED, Message: "the policy forbids it",
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t, func(f *fake) { f.fail = connect.NewError(connect.CodeUnknown, "x").WithDetail(detail) })
	f.run(t, "devices").check(t, 5, "throwbar: list devices: the policy forbids it\n")
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1" // the port of a listener that was closed may be given to another one
	for _, words := range []string{
		"devices", "tabs", "query listWindows", "call getActiveTab --device x", "chat hello", "watch", "pair", "history",
		"call nothingLikeIt", "query nothingLikeIt --now",
	} {
		e := do(t, run{server: address, args: strings.Fields(words)})
		e.check(t, 3)
		if want := "throwbar: no server at " + address + ": start one with `throwbar serve`\n"; e.err != want {
			t.Errorf("%s: %q, want %q", words, e.err, want)
		}
	}
}

func TestWhatIsNoThrowbarServer(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "ListTokens") {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusTemporaryRedirect)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(other.Close)
	do(t, run{server: other.URL, args: []string{"devices"}}).check(t, 1, "throwbar: list devices: the server does not know this call")
	do(t, run{server: other.URL, args: []string{"token", "list"}}).check(t, 1, "throwbar: list tokens: ")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, row := range map[string]struct {
		run  run
		code int
		says string
	}{
		"wrong":        {run{args: []string{"devices", "--token-file", write("wrong", "x", 0o600)}}, 6, "does not accept the token in " + dir},
		"wrong, query": {run{args: []string{"query", "listWindows", "--token-file", write("wrong2", "x", 0o600)}}, 6, "does not accept the token in " + dir},
		"missing":      {run{args: []string{"devices", "--token-file", dir + "/none"}}, 6, "no token at " + dir + "/none: name another file"},
		"own missing":  {run{args: []string{"devices"}, env: map[string]string{"THROWBAR_DATA_DIR": dir}}, 6, "start a server with `throwbar serve`"},
		"folder":       {run{args: []string{"devices", "--token-file", dir}}, 6, "cannot be read: is a directory"},
		"empty":        {run{args: []string{"devices", "--token-file", write("empty", " \n", 0o600)}}, 6, "holds no token"},
		"two lines":    {run{args: []string{"devices", "--token-file", write("two", "a\nb", 0o600)}}, 6, "holds no token"},
		"others read":  {run{args: []string{"devices", "--token-file", write("open", secret, 0o644)}}, 0, "warning: " + dir + "/open can be read by others"},
		"environment":  {run{args: []string{"devices"}, env: map[string]string{"THROWBAR_TOKEN_FILE": write("env", secret, 0o600)}}, 0, "laptop"},
		"own elsewhere": {
			run{args: []string{"devices", "--server", "https://throwbar.example"}},
			6,
			"the token of this machine's server is not for https://throwbar.example",
		},
		"in the clear": {
			run{args: []string{"devices", "--server", "http://throwbar.example", "--token-file", write("t", secret, 0o600)}},
			2,
			"only over https",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if row.run.server = f.url; strings.Contains(strings.Join(row.run.args, " "), "--server") {
				row.run.server = ""
			}
			e := do(t, row.run)
			e.check(t, row.code, row.says)
			if strings.Count(e.err, "\n") > 1 || strings.Contains(e.out+e.err, secret) {
				t.Errorf("stderr: %q", e.err)
			}
		})
	}
}

func TestAddressWithoutScheme(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	do(t, run{server: strings.TrimPrefix(f.url, "http://"), args: []string{"devices"}}).check(t, 0, "laptop")
	do(t, run{args: []string{"--server", strings.TrimPrefix(f.url, "http://") + "/", "devices"}}).check(t, 0, "laptop")
	do(t, run{server: "::", args: []string{"devices"}}).check(t, 2, "THROWBAR_SERVER \"::\" is no address")
	do(t, run{server: "::", args: []string{"--server", f.url, "devices"}}).check(t, 0, "laptop")
}

func TestDataDir(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": "/h"}, "/h/.local/share/throwbar"},
		{map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/throwbar"},
		{map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/x", "THROWBAR_DATA_DIR": "/d"}, "/d"},
	} {
		if got := cli.DataDir(func(k string) string { return row.env[k] }); filepath.ToSlash(got) != row.want {
			t.Errorf("DataDir(%v) = %q", row.env, got)
		}
	}
}

// TestExtraVerbs has verbs of somebody else, as app adds them.
func TestExtraVerbs(t *testing.T) {
	t.Parallel()
	verb := func(name string, run func(*cobra.Command) error) *cobra.Command {
		return &cobra.Command{
			Use: name, Short: "A verb of app", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return run(c) },
		}
	}
	signals := make(chan os.Signal, 2)
	extra := func() []*cobra.Command {
		return []*cobra.Command{
			verb("serve", func(c *cobra.Command) error {
				signals <- os.Interrupt
				<-c.Context().Done()
				return nil // it stopped in order
			}),
			verb("stuck", func(*cobra.Command) error {
				signals <- os.Interrupt
				signals <- os.Interrupt
				select {}
			}),
			verb("broken", func(*cobra.Command) error { return cli.Errorf(cli.Offline, "port: %w", errors.New("in use")) }),
			verb("reads", func(c *cobra.Command) error {
				server, err := c.Flags().GetString("server")
				if err != nil || server != "http://127.0.0.1:9" {
					return cli.Errorf(cli.Failed, "server = %q, %v", server, err)
				}
				_, err = c.Flags().GetString("token-file")
				return err
			}),
			verb("cancelled", func(c *cobra.Command) error { return context.Canceled }),
		}
	}
	for words, row := range map[string]struct {
		code int
		says string
	}{
		"serve":                      {0, ""},
		"broken":                     {3, "throwbar: port: in use\n"},
		"broken more":                {2, "throwbar: unknown command \"more\""},
		"reads --server 127.0.0.1:9": {0, ""},
		"cancelled":                  {130, ""},
		"help serve":                 {0, "A verb of app"},
		"--help":                     {0, "serve"},
		"stuck":                      {130, ""},
	} {
		t.Run(words, func(t *testing.T) { // one after the other: they share the signals
			do(t, run{args: strings.Fields(words), extra: extra(), signals: signals}).check(t, row.code, row.says)
			for len(signals) > 0 {
				<-signals
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	do(t, run{args: []string{"version"}}).check(t, 0, "throwbar ", "catalogue ")
	do(t, run{args: []string{"version", "-o", "json"}}).check(t, 0, `"catalogue": "`)
	var out, errOut buffer
	code := cli.Run(t.Context(), []string{"version"}, func(string) string { return "" }, strings.NewReader(""), &out, &errOut)
	ended{code, out.String(), errOut.String()}.check(t, 0, "throwbar ")
}
