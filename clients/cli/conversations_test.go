package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	agentv1 "throwbar.dev/throwbar/gen/go/throwbar/agent/v1"
)

// withConversations has three: one of a person, one that its agent started, and one that asks.
func withConversations(f *fake) {
	first := f.seed(&agentv1.Conversation{
		Title: "Tabs of the morning", Running: true, Status: agentv1.ConversationStatus_CONVERSATION_STATUS_RUNNING, UpdatedAt: ago(time.Minute),
	})
	f.seed(&agentv1.Conversation{
		Title: "Read \x1b[2J the news", ParentId: first.GetConversationId(), Agent: "reader", UpdatedAt: ago(2 * time.Minute),
		Status: agentv1.ConversationStatus_CONVERSATION_STATUS_WAITING,
	})
	f.seed(&agentv1.Conversation{
		Title: "Trip", UpdatedAt: ago(time.Hour), Status: agentv1.ConversationStatus_CONVERSATION_STATUS_FAILED,
		Settings: &agentv1.ConversationSettings{Prompt: "Be brief.\nAlways.", Grants: &agentv1.Grants{Only: []string{"tabs"}}},
	})
	f.tools = []*agentv1.ToolInfo{
		{Name: "closeTabs", Group: "tabs", Summary: "Close tabs.", Available: true},
		{Name: "sendToConversation", Group: "agent", Summary: "Send a message to another conversation's agent.", Granted: true},
	}
}

func TestConversationVerbs(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"conversations_show":     "conversations show 3f2b",
		"conversations_json":     "conversations list -o json --limit 1",
		"conversations_settings": "conversations settings 3f2b --model big --effort high --grant sendToConversation --deny closeTabs --working-directory /src",
		"models":                 "models",
		"agents":                 "agents",
		"tools":                  "tools list",
		"conversations_send":     "conversations send 9ab1 hello",
		"conversations_rename":   "conversations rename 9ab1 News",
		"conversations_archive":  "conversations archive 9ab1",
		"conversations_queue":    "conversations queue 9ab1",
		"conversations_stop":     "conversations stop 9ab1",
		"help_conversations":     "conversations --help",
		"help_settings":          "conversations settings --help",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, withConversations)
			e := do(t, run{server: f.url, args: strings.Fields(words), env: map[string]string{"THROWBAR_TOKEN_FILE": tokenFile(t)}})
			e.check(t, 0)
			golden(t, name, hideFile(e.out), f.url)
		})
	}
}

func TestConversationErrors(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations, func(f *fake) {
		f.seedAs("3f2a9c1d-ffff-4000-8000-000000000004", "Second of the morning")
	})
	for words, row := range map[string]struct {
		code int
		says string
	}{
		"conversations show beef":                     {1, `there is no open conversation "beef"; there are 3f2a9c1d-5 (Tabs of the morning), 9ab1 (Read \x1b[2J the news), 3f2b (Trip), 3f2a9c1d-f`},
		"conversations show 3f2a9":                    {2, `"3f2a9" fits 2 conversations: 3f2a9c1d-5 (Tabs of the morning), 3f2a9c1d-f (Second of the morning). Give more of it`},
		"chat --conversation beef hello":              {1, "there is no open conversation"},
		"chat --conversation beef --new x":            {2, "only one of --new and --conversation"},
		"chat --detach":                               {2, "give it as an argument"},
		"chat --effort much hello":                    {2, "is none of none, low, medium, high, max"},
		"conversations reopen 3f2a":                   {2, "give its whole id"},
		"conversations queue 3f2b rm 1":               {1, "nothing waits any more"},
		"conversations queue 3f2b drop 1":             {2, "takes a conversation, and edit N TEXT or rm N"},
		"conversations send 3f2b x --message-id 7":    {2, "is no UUID"},
		"conversations create --prompt-file none.txt": {2, "--prompt-file: open none.txt"},
		"conversations list --all --archived":         {2, "only one of --all and --archived"},
		"conversations archiv 3f2b":                   {2, "did you mean archive?"},
		"conversations watch 3f2b --after -1":         {2, `--after "-1" is no whole number of 0 or more`},
		"conversations list --limit 99999999999":      {2, `--limit "99999999999" is too large or too small`},
		"conversations history 3f2b --limit many":     {2, `--limit "many" is no whole number`},
		"conversations history 3f2b --verbose=maybe":  {2, `is neither true nor false`},
		"conversations rename 3f2b":                   {2, "conversations rename needs a title"},
		"conversations send":                          {2, "conversations send needs a conversation, by its handle or id and a message"},
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			e := f.run(t, strings.Fields(words)...)
			e.check(t, row.code, row.says)
			if strings.Count(e.err, "\n") != 1 {
				t.Errorf("not one line: %q", e.err)
			}
		})
	}
}

func TestConversationsAreChanged(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	empty := newFake(t)
	e := do(t, run{
		server: empty.url, stdin: strings.NewReader("Be kind.\nBe brief.\n"),
		args: []string{"conversations", "create", "--title", "New", "--prompt-file", "-", "--only", "tabs,domains", "--agent", "reader", "-o", "json"},
	})
	e.check(t, 0, `"title": "New"`)
	if own := empty.created[0].GetSettings(); own.GetPrompt() != "Be kind.\nBe brief." || len(own.GetGrants().GetOnly()) != 2 {
		t.Errorf("created: %v", empty.created)
	}
	f.run(t, "conversations", "settings", "3f2b", "--grant", "sendToConversation").check(t, 0, "only        tabs", "granted     sendToConversation")
	f.run(t, "conversations", "settings", "3f2b", "--reset-grants", "--only", "a,b").check(t, 0, "only        a, b")
	f.run(t, "conversations", "settings", "3f2b", "--prompt", "").check(t, 0)
	f.run(t, "conversations", "settings", "3f2b", "--wakes", "0").check(t, 0, "before a person writes (its own bound: 0)")
	f.run(t, "conversations", "settings", "3f2b", "--wakes", "default").check(t, 0, "before a person writes")
	for _, wrong := range []string{"101", "-1", "often", "4294967297"} {
		f.run(t, "conversations", "settings", "3f2b", "--wakes", wrong).check(t, 2, "--wakes is a number from 0 to 100, or default")
	}
	f.run(t, "conversations", "archive", "3f2b").check(t, 0, "`throwbar conversations reopen "+conversationIDs()[2]+"` opens it again")
	f.run(t, "conversations", "show", "3f2b").check(t, 1, "there is no open conversation")
	f.run(t, "conversations", "list", "--archived").check(t, 0, conversationIDs()[2])
	f.run(t, "chat", "--conversation", conversationIDs()[2], "hello").check(t, 5, "is archived")
	f.run(t, "conversations", "reopen", conversationIDs()[2]).check(t, 0, "3f2b  Trip  open again")
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.updates[1].GetGrants(); len(g.GetExtra()) != 0 || len(g.GetOnly()) != 2 {
		t.Errorf("grants: %v", g)
	}
	if f.updates[2].Prompt == nil || f.updates[2].Grants != nil || f.updates[2].Model != nil {
		t.Errorf("prompt: %v", f.updates[2])
	}
	if never, server := f.updates[3].GetWakes(), f.updates[4].GetWakes(); never.Most == nil || never.GetMost() != 0 || server == nil || server.Most != nil ||
		len(f.updates) != 5 {
		t.Errorf("wakes: %v", f.updates[3:])
	}
}

// What is stored is followed from any place, once and in order, and the follower ends when no turn runs if that is wanted.
// TestModelAndEffortOfAConversation changes one of them: the other one stays. What is given empty is taken away.
func TestModelAndEffortOfAConversation(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.seed(&agentv1.Conversation{Title: "Trip", Settings: &agentv1.ConversationSettings{
			Model: &agentv1.ModelChoice{Models: []string{"big", "small"}, Effort: "high"},
		}})
	})
	id := conversationIDs()[0][:4]
	for _, row := range []struct {
		flags  []string
		models string
		effort string
	}{
		{[]string{"--effort", "low"}, "big small", "low"},
		{[]string{"--model", "other"}, "other", "low"},
		{[]string{"--model", ""}, "", "low"},
		{[]string{"--model", "big", "--effort", ""}, "big", ""},
	} {
		f.run(t, append([]string{"conversations", "settings", id}, row.flags...)...).check(t, 0)
		f.mu.Lock()
		got := f.updates[len(f.updates)-1].GetModel()
		f.mu.Unlock()
		if got == nil || strings.Join(got.GetModels(), " ") != row.models || got.GetEffort() != row.effort {
			t.Errorf("%q: %v", row.flags, got)
		}
	}
	f.run(t, "conversations", "settings", id, "--working-directory", "/x").check(t, 0)
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.updates[len(f.updates)-1]; last.GetModel() != nil {
		t.Errorf("the model is changed too: %v", last)
	}
}

// TestTextsNeedNoQuotes gives a title and messages as several words, as chat takes them.
func TestTextsNeedNoQuotes(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations)
	f.run(t, "conversations", "history", "3f2b").check(t, 0, "Nothing was said in it yet.")
	f.run(t, "conversations", "rename", "3f2b", "Tabs", "of", "the", "trip").check(t, 0, "3f2b  Tabs of the trip  renamed")
	f.run(t, "conversations", "send", "3f2b", "one", "more", "thing").check(t, 0, "a turn has begun")
	f.mu.Lock()
	said := f.sends[len(f.sends)-1].GetMessage()
	f.mu.Unlock()
	if said != "one more thing" {
		t.Errorf("sent %q", said)
	}
	for _, words := range [][]string{{"rename", "3f2b", " "}, {"send", "3f2b", ""}} {
		f.run(t, append([]string{"conversations"}, words...)...).check(t, 2, "that is not empty")
	}
	f.run(t, "conversations", "send", "3f2b", "one", "\xff").check(t, 2, "needs a message in UTF-8")
	prompt := filepath.Join(t.TempDir(), "prompt")
	if err := os.WriteFile(prompt, []byte("Be \xff."), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t, "conversations", "settings", "3f2b", "--prompt-file", prompt).check(t, 2, "is not UTF-8")
}

func TestConversationsWatchAndHistory(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(f *fake) {
		f.onChat = plays(turn)
		f.cut = func(n, sent int) bool { return n == 2 && sent == 5 }
	})
	f.run(t, "chat", "close my tabs").check(t, 0)
	e := f.run(t, "conversations", "watch", "3f2a", "--after", "0", "--until-idle", "-o", "json")
	e.check(t, 0)
	var numbers []string
	for line := range strings.Lines(e.out) {
		var event struct{ Sequence string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, event.Sequence)
	}
	if want := "1 2 3 4 5 6 7 8 9 10 11 12"; strings.Join(numbers, " ") != want {
		t.Errorf("numbers: %v", numbers)
	}
	f.run(t, "conversations", "watch", "3f2a", "--after", "99", "--until-idle").check(t, 0, "ends before that place")
	e = f.run(t, "conversations", "history", "3f2a")
	e.check(t, 0)
	golden(t, "conversations_history", e.out, f.url)
	if e := f.run(t, "conversations", "history", "3f2a", "--limit", "1"); e.out != "Two tabs stay open.\n" {
		t.Errorf("history: %q", e.out)
	}
}

func TestWholeOutputOfACall(t *testing.T) {
	t.Parallel()
	f := newFake(t, withConversations, func(f *fake) { f.whole = map[string]string{"c1": "a text that is longer than a page"} })
	e := f.run(t, "conversations", "output", "3f2a", "c1")
	if e.check(t, 0); e.out != "a text that is longer than a page\n" {
		t.Errorf("output: %q", e.out)
	}
	f.run(t, "conversations", "output", "3f2a", "c2").check(t, 1, "there is no such call")
}
