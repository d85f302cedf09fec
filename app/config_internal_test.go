package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"throwbar.dev/throwbar/agent/model"
	"throwbar.dev/throwbar/agent/tool/schema"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

const secretKey = "sk-secret-0123456789abcdef"

// loaded is a configuration file that was read, with what was logged.
type loaded struct {
	file *fileConfig
	err  error
	log  string
}

// load reads text as a configuration file beside a key file.
func load(t *testing.T, text string) loaded {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "throwbar.yaml")
	for name, content := range map[string]string{"throwbar.yaml": text, "key": secretKey + "\n", "empty": " \n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	file, err := readConfig(path, environment("MODEL_KEY", secretKey), slog.New(slog.NewTextHandler(&log, nil)))
	for _, word := range []string{secretKey, strings.ReplaceAll(secretKey, "-", "_")} {
		if err != nil && strings.Contains(err.Error(), word) || strings.Contains(log.String(), word) {
			t.Errorf("the key is told: %v\n%s", err, log.String())
		}
	}
	return loaded{file, err, log.String()}
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// TestConfigExample reads the example of the documentation, which names every field that there is.
func TestConfigExample(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "<!-- example -->\n```yaml\n")
	text, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("the documentation has no example")
	}
	text = strings.NewReplacer("/etc/throwbar/openai.key", "key", "OPENROUTER_API_KEY", "MODEL_KEY", "GEMINI_API_KEY", "MODEL_KEY").Replace(text)
	got := load(t, text)
	if got.err != nil {
		t.Fatal(got.err)
	}
	if len(got.file.models) < 4 || len(got.file.config.GetAgents()) < 2 {
		t.Errorf("%d models, %d agents", len(got.file.models), len(got.file.config.GetAgents()))
	}
	all := fmt.Sprint(protojson.MarshalOptions{UseProtoNames: true}.Format(got.file.config))
	for _, m := range []proto.Message{
		&configv1.Config{}, &configv1.Model{}, &configv1.ProviderSwitches{}, &configv1.AgentDefinition{}, &configv1.AgentLimits{},
	} {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if name := string(fields.Get(i).Name()); !strings.Contains(all, `"`+name+`"`) {
				t.Errorf("the example does not show %s", name)
			}
			if name := string(fields.Get(i).Name()); !strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("the documentation does not explain %s", name)
			}
		}
	}
}

func TestConfigModels(t *testing.T) {
	t.Parallel()
	got := load(t, `
models:
- name: big
  key_file: key
  profile: openai-strict
- name: local/qwen
  model: qwen3
  baseUrl: http://127.0.0.1:11434/v1/
  profile: LOCAL
  context_tokens: 8192
  max_output_tokens: 1024
  effort: high
  prompted: true
  idle_timeout: 5m
  switches:
    stream_options: false
    parallel_tool_calls: true
    max_tokens_field: max_completion_tokens
    developer_role: true
    reasoning_echo: tool-turns
    reasoning_field: reasoning
    no_images: true
    effort_field: reasoning.effort
- name: cloud
  base_url: https://models.example/v1
  key_env: MODEL_KEY
  profile: SCHEMA_PROFILE_GEMINI
  switches: {parallel_tool_calls: false, stream_options: true, reasoning_echo: always}
`)
	if got.err != nil || got.log != "" {
		t.Fatalf("%v\n%s", got.err, got.log)
	}
	want := []ModelConfig{
		{Name: "big", Key: secretKey, Profile: schema.ProfileStrict},
		{
			Name: "local/qwen", Model: "qwen3", BaseURL: "http://127.0.0.1:11434/v1/", Profile: schema.ProfileLocal, Context: 8192, Output: 1024,
			Effort: "high", Prompted: true, IdleTimeout: 5 * time.Minute,
			Switches: model.Switches{
				StreamOptions: model.Off, ParallelToolCalls: model.On, MaxTokensField: "max_completion_tokens", DeveloperRole: true,
				ReasoningEcho: model.EchoToolTurns, ReasoningField: "reasoning", NoImages: true, EffortField: "reasoning.effort",
			},
		},
		{
			Name: "cloud", BaseURL: "https://models.example/v1", Key: secretKey, Profile: schema.ProfileGemini,
			Switches: model.Switches{StreamOptions: model.On, ParallelToolCalls: model.Off, ReasoningEcho: model.EchoAlways},
		},
	}
	for i, m := range got.file.models {
		if m != want[i] {
			t.Errorf("model %d differs", i)
		}
	}
	choices, err := Config{Models: got.file.models}.choices()
	if err != nil || len(choices) != 3 || choices[0].Context != DefaultContext || !choices[0].Images || choices[1].Images || choices[1].Context != 8192 ||
		choices[1].Output != 1024 || choices[1].Effort != "high" || choices[2].Profile != schema.ProfileGemini {
		t.Errorf("%+v, %v", choices, err)
	}
	if told := fmt.Sprintf("%v %+v %#v %v", got.file.models, got.file.models, got.file.models, choices); strings.Contains(told, secretKey) {
		t.Error("the key is printed")
	}
}

func TestConfigProblems(t *testing.T) {
	t.Parallel()
	const local = "models:\n- name: a\n  base_url: http://127.0.0.1:1/v1\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"nothing":              {"", nil},
		"only remarks":         {"# models:\n", nil},
		"byte order mark":      {"\uFEFF" + local, nil},
		"lone cr":              {strings.ReplaceAll(local+"  efort: low\n", "\n", "\r"), []string{`:4: unknown field "efort"`}},
		"crlf":                 {strings.ReplaceAll(local+"  efort: low\n", "\n", "\r\n"), []string{`:4: unknown field "efort"`}},
		"unknown key":          {local + "  apikey: " + secretKey + "\n", []string{`:4: unknown field "apikey"`}},
		"key in the file":      {local + "  key: " + secretKey + "\nkeys: [" + secretKey + "]\n", []string{`:4: unknown field "key"`, `:5: unknown field "keys"`}},
		"key as file":          {local + "  key_file: [" + secretKey + "]\n", []string{":4: "}},
		"key as variable":      {local + "  key_env: " + strings.ReplaceAll(secretKey, "-", "_") + "\n", []string{":4: the model a: the variable (what looks like a key) is not set"}},
		"key as path":          {local + "  key_file: " + secretKey + "\n", []string{":4: the model a: open "}},
		"key as profile":       {local + "  profile: " + secretKey + "\n", []string{":4: profile: "}},
		"key as number":        {local + "  context_tokens: " + secretKey + "\n", []string{":4: "}},
		"key as address":       {"models:\n- name: a\n  base_url: " + secretKey + "\n", []string{":3: the model a: "}},
		"key as switch":        {local + "  switches: {stream_options: " + secretKey + ", max_tokens_field: " + secretKey + "}\n", []string{":4: "}},
		"number of a field":    {"1: []\n", []string{":1: a key that is no name"}},
		"extension":            {"\"[x.y]\": 1\n", []string{":1: a key that is no name"}},
		"twice":                {local + "  baseUrl: http://127.0.0.1:2/v1\n", []string{":4: baseUrl is there twice: line 3 has it too"}},
		"second document":      {local + "---\nmodels: []\n", []string{"a second document"}},
		"not yaml":             {"models:\n  - name: a\n bad\n", []string{"is not YAML"}},
		"no utf-8":             {"models: []\n# \xff\n", []string{":2: is not UTF-8"}},
		"line separator":       {"models: []\n# \u2028\n", []string{":2: has a character that"}},
		"anchors":              {"models: &a []\nagents: *a\n", []string{":1: anchors", ":2: anchors"}},
		"bomb":                 {"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", []string{":1: anchors"}},
		"tag":                  {"models: !!seq []\n", []string{":1: tags"}},
		"null":                 {local + "  key_file: ~\n", []string{":4: ~ says nothing"}},
		"deep":                 {"models: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), []string{"nested too deep"}},
		"list for a message":   {"models: {name: a}\n", []string{":1: "}},
		"text for a list":      {"models: a\n", []string{":1: "}},
		"root":                 {"- a\n", []string{":1: "}},
		"rules":                {"models:\n- name: '-'\n  base_url: http://127.0.0.1:1/v1\n  effort: extreme\n", []string{":2: models[0].name: ", ":4: models[0].effort: "}},
		"no name":              {"models:\n- base_url: http://127.0.0.1:1/v1\n", []string{":2: models[0].name: "}},
		"enum":                 {local + "  profile: opanai\n  effort: x\n", []string{`:4: profile: "opanai" is none of portable, openai-strict, gemini, local`, ":5: models[0].effort"}},
		"duration":             {local + "  idle_timeout: 0s\n", []string{":4: models[0].idle_timeout: "}},
		"negative":             {local + "  context_tokens: -1\n", []string{":4: "}},
		"agent":                {"agents:\n- name: A\n", []string{":2: agents[0].name", "agents[0].description", "agents[0].tools"}},
		"same model":           {local + "- name: a\n  base_url: http://127.0.0.1:1/v1\n", []string{":4: a second model with the name a: line 2 has the first"}},
		"same agent":           {"agents:\n- {name: a, description: d, tools: [tabs]}\n- {name: a, description: d, tools: [tabs, tabs]}\n", []string{":3: a second agent with the name a", ":3: the agent a names the tool tabs twice"}},
		"unknown tool":         {"agents:\n- name: a\n  description: d\n  tools: [serchTabs, tabs, nosuch]\n", []string{`:4: the agent a: there is no tool or group "serchTabs": did you mean searchTabs?; there is no tool or group "nosuch"`}},
		"half of a pair":       {"agents:\n- {name: a, description: d, tools: [tabs, summonAgent]}\n", []string{":2: the agent a: summonAgent makes no sense without retrieveAgent: grant both"}},
		"no limit":             {"agent_limits:\n  wakes: 0\n  turnTokens: 0\n", []string{":2: wakes: 0 would not mean none but the default", ":3: turnTokens: 0 would"}},
		"unknown model":        {local + "agents:\n- name: b\n  description: d\n  tools: [tabs]\n  models: [a, c, a]\n", []string{":8: the agent b names the model c", ":8: the agent b names the model a twice"}},
		"two keys":             {local + "  key_file: key\n  key_env: MODEL_KEY\n", []string{":5: the model a has key_file and key_env"}},
		"no variable":          {local + "  key_env: NO_SUCH\n", []string{":4: the model a: the variable NO_SUCH is not set"}},
		"no key file":          {local + "  key_file: nowhere\n", []string{":4: the model a: open "}},
		"key file is folder":   {local + "  key_file: .\n", []string{":4: the model a: "}},
		"empty key file":       {local + "  key_file: empty\n", []string{":4: the model a: ", "is empty"}},
		"default without key":  {"models:\n- name: a\n", []string{":2: the model a has no key: name its file with key_file"}},
		"address":              {"models:\n- name: a\n  base_url: localhost:1\n- name: b\n  base_url: https://u:p@x/v1\n", []string{":3: the model a: ", ":5: the model b: ", "must not hold credentials"}},
		"field with a meaning": {local + "  switches:\n    effort_field: messages.x\n", []string{"cannot be messages.x"}},
		"output over context":  {local + "  context_tokens: 100\n  max_output_tokens: 100\n", []string{":5: the model a may answer with more tokens"}},
		"limits":               {"agent_limits: {rounds: 201, depth: 17, turn_time: 48h}\n", []string{"agent_limits.rounds", "agent_limits.depth", "agent_limits.turn_time"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := load(t, tt.text)
			if len(tt.want) == 0 && got.err != nil || len(tt.want) > 0 && got.err == nil {
				t.Fatalf("error %v", got.err)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.err.Error(), want) {
					t.Errorf("no %q in %v", want, got.err)
				}
			}
		})
	}
}

// TestConfigProblemsAllAtOnce has a mistake in nearly every line. All of them are told in one run, each once, in the order of
// their lines, whether a field cannot be read, breaks a rule of its own, or does not go with another.
func TestConfigProblemsAllAtOnce(t *testing.T) {
	t.Parallel()
	got := load(t, `models:
- name: a
  modl: x
  base_url: not an address
  key_file: nowhere
  key_env: NO_SUCH
- name: a
  context_tokens: -5
  effort: huge
  idle_timeout: 10 minutes
  profile: strange
  switches:
    stream_options: maybe
agents:
- name: r
  models: [zzz]
  tools: [nosuchtool]
agent_limits:
  rounds: 0
  depth: 99999999999
extra: 1
`)
	if got.err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`:3: unknown field "modl"`,
		":4: the model a: ",
		":6: the model a has key_file and key_env: ",
		":7: a second model with the name a: line 2 has the first",
		":7: the model a has no key: ",
		`:8: invalid integer: "-5": invalid syntax`,
		":9: models[1].effort: must be in list [none, low, medium, high, max]",
		":10: invalid duration: ",
		`:11: profile: "strange" is none of portable`,
		`:13: expected bool, got "maybe"`,
		":15: agents[0].description: ",
		":16: the agent r names the model zzz, which the file does not have",
		`:17: the agent r: there is no tool or group "nosuchtool"`,
		":19: rounds: 0 would not mean none",
		":20: integer is too large",
		`:21: unknown field "extra"`,
	}
	lines := strings.Split(got.err.Error(), "\n")[1:]
	for i := range max(len(want), len(lines)) {
		if i >= len(want) || i >= len(lines) || !strings.Contains(lines[i], want[min(i, len(want)-1)]) {
			t.Fatalf("problem %d, want %q in\n%s", i, want[min(i, len(want)-1)], got.err)
		}
	}
}

// TestDoctorAndABadConfiguration has doctor name the first of several problems, in one line.
func TestDoctorAndABadConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("extra: 1\nagent_limits: {rounds: 0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	state, text := (&doctor{server: "http://127.0.0.1:1", file: path, env: environment()}).lookProviders(t.Context())
	want := "c.yaml has 2 problems, which `throwbar serve` lists; the first is " + path + `:1: unknown field "extra"`
	if state != hopFailed || !strings.HasPrefix(text, want) || strings.Contains(text, "\n") {
		t.Errorf("%s: %s", state, text)
	}
}

// TestConfigAndVariables has a file beside the variables that did its work before.
func TestConfigAndVariables(t *testing.T) {
	t.Parallel()
	variables := environment("THROWBAR_MODEL", "old", "THROWBAR_MODEL_BASE_URL", "http://127.0.0.1:2/v1", "OPENAI_API_KEY", secretKey)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const models = "models: [{name: new, base_url: 'http://127.0.0.1:1/v1'}, {name: other, base_url: 'http://127.0.0.1:1/v1'}]\nagent_limits: {rounds: 3}\n"
	for name, tt := range map[string]struct {
		path   string
		env    func(string) string
		models string
		hint   bool
		log    string
	}{
		"variables":                    {"", variables, "old", false, ""},
		"nothing":                      {"", environment(), "", true, ""},
		"file":                         {file(models), environment(), "new other", false, ""},
		"file and variables":           {file(models), variables, "new other", false, "THROWBAR_MODEL_BASE_URL"},
		"file and a key":               {file(models), environment("OPENAI_API_KEY", secretKey), "new other", false, ""},
		"file without models":          {file("agent_limits: {rounds: 3}\n"), variables, "old", false, ""},
		"file without models, nothing": {file(""), environment(), "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			settings, err := setModels(tt.path, tt.env, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			cfg := settings.into(Config{})
			choices, err := cfg.choices()
			var names []string
			for _, c := range choices {
				names = append(names, c.Name)
			}
			if err != nil || strings.Join(names, " ") != tt.models || (settings.hint() != "") != tt.hint {
				t.Errorf("models %v, hint %q, %v", names, settings.hint(), err)
			}
			if (log.Len() > 0) != (tt.log != "") || !strings.Contains(log.String(), tt.log) {
				t.Errorf("log %s", log.String())
			}
			if strings.Contains(tt.path, "c.yaml") && strings.Contains(name, "file and") && cfg.AgentLimits.GetRounds() != 3 {
				t.Error("the limits are lost")
			}
		})
	}
}

// TestConfigWarnings looks at the rights of files and at keys that go where everybody reads them.
func TestConfigWarnings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, key := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "key")
	text := "models:\n- {name: a, base_url: 'http://models.example/v1', key_file: key}\n- {name: b, base_url: 'https://models.example/v1'}\n"
	for name, mode := range map[string]os.FileMode{path: 0o666, key: 0o644} {
		content := text
		if name == key {
			content = secretKey
		}
		if err := os.WriteFile(name, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil { // whatever the mask says
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	if _, err := readConfig(path, environment(), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"can change the configuration", "can read the key of a model", "everybody on the way"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is there %d times in %s", want, strings.Count(log.String(), want), log.String())
		}
	}
	if strings.Contains(log.String(), secretKey) {
		t.Error("the key is in the log")
	}
}

func TestConfigIsBounded(t *testing.T) {
	t.Parallel()
	if got := load(t, "# "+strings.Repeat("x", maxConfigFile)); got.err == nil || !strings.Contains(got.err.Error(), "is larger than") {
		t.Errorf("error %v", got.err)
	}
	if _, err := readConfig(t.TempDir(), environment(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("error %v", err)
	}
}

// FuzzConfig reads anything: what is wrong is a problem with a line of the file.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("models:\n- name: a\n  base_url: http://127.0.0.1:1/v1\n  profile: gemini\n  switches: {stream_options: false}\n"))
	f.Add([]byte("agents: [{name: a, description: d, tools: [x], models: [b]}]\nagent_limits:\n  turn_time: 1h\n"))
	f.Add([]byte("a: &a [*a]\r\r\n? [x]\n: |+\n  \xff\n...\n---\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := newParse("c.yaml")
		config, read := p.parse(raw)
		if read {
			p.check(config, environment(), slog.New(slog.DiscardHandler))
		}
		lines := bytes.Count(raw, []byte("\n")) + bytes.Count(raw, []byte("\r")) + 1
		for _, problem := range p.problems {
			if problem.line < 1 || problem.line > lines+1 || problem.text == "" {
				t.Errorf("line %d of %d in %q", problem.line, lines, problem.text)
			}
		}
	})
}
