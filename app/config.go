package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"buf.build/go/protovalidate"
	"buf.build/go/protoyaml"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"throwbar.dev/throwbar/clients/cli"
	configv1 "throwbar.dev/throwbar/gen/go/throwbar/config/v1"
)

const (
	maxConfigFile  = 1 << 20
	maxConfigDepth = 32

	configHelp = "`file` with models, agents and their limits, in YAML (THROWBAR_CONFIG)"
)

// fileConfig is a configuration file without problems.
type fileConfig struct {
	path   string
	models []ModelConfig
	config *configv1.Config
}

// readConfig reads a configuration file with the keys that it names. Every problem is in the one error.
func readConfig(path string, env func(string) string, log *slog.Logger) (*fileConfig, error) {
	raw, info, err := readSmall(path, maxConfigFile)
	if err != nil {
		return nil, cli.Errorf(cli.Invalid, "configuration: %v", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		log.Warn("others on this machine can change the configuration, and with it where keys are sent: chmod go-w it",
			slog.String("file", path))
	}
	p := newParse(path)
	config, read := p.parse(raw)
	out := &fileConfig{path: path, config: config}
	if read { // what is wrong with one field hides nothing that is wrong with another
		out.models = p.check(config, env, log)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// readSmall reads a file that may have so many bytes.
func readSmall(path string, limit int64) ([]byte, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		return nil, nil, fmt.Errorf("%s is a folder", path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	case int64(len(raw)) > limit:
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return raw, info, nil
}

// problem is one thing that is wrong, with the number of its line.
type problem struct {
	line int
	text string
}

// parse collects what is wrong with a configuration.
type parse struct {
	path     string
	problems []problem
	// nodes says where a message was written.
	nodes map[proto.Message]*yaml.Node
}

func newParse(path string) *parse {
	return &parse{path: path, nodes: make(map[proto.Message]*yaml.Node)}
}

// err is one error for all problems in the order of their lines, nil if there is none.
func (p *parse) err() error {
	slices.SortStableFunc(p.problems, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var list []string
	for _, one := range p.problems {
		list = append(list, fmt.Sprintf("%s:%d: %s", p.path, one.line, one.text))
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return cli.Errorf(cli.Invalid, "%s", list[0])
	}
	return &cli.Exit{Code: cli.Invalid, Err: fmt.Errorf("%s has %d problems", filepath.Base(p.path), len(list)), List: list}
}

func (p *parse) problem(line int, format string, args ...any) {
	one := problem{line, fmt.Sprintf(format, args...)}
	if !slices.Contains(p.problems, one) {
		p.problems = append(p.problems, one)
	}
}

// parse reads the text of a configuration, and says whether its fields could be read. What it returns is whole only if there
// are no problems.
func (p *parse) parse(raw []byte) (*configv1.Config, bool) {
	config := &configv1.Config{}
	text, ok := p.plain(raw)
	if !ok || !p.document(text) {
		return config, false
	}
	validator, err := protovalidate.New(protovalidate.WithMessages(config))
	if err != nil { // not reachable: the rules are the program's own
		p.problem(1, "%v", err)
		return config, false
	}
	err = protoyaml.UnmarshalOptions{
		Path: p.path, Validator: asValidator{validator}, CustomUnmarshaler: p,
	}.Unmarshal(text, config)
	p.reported(err)
	return config, true
}

// plain is the text with the line ends that are counted alike everywhere.
func (p *parse) plain(raw []byte) ([]byte, bool) {
	text := bytes.TrimPrefix(raw, []byte("\uFEFF"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	for i, line := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(line) {
			p.problem(i+1, "is not UTF-8")
		} else if bytes.ContainsAny(line, "\u0085\u2028\u2029") {
			p.problem(i+1, "has a character that some programs take for the end of a line: write it as an escape in a quoted text")
		}
	}
	return text, len(p.problems) == 0
}

// document looks at the form of the text, which has to be one document of plain values.
func (p *parse) document(text []byte) bool {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var root, more yaml.Node
	err := dec.Decode(&root)
	if errors.Is(err, io.EOF) {
		return false // nothing is said
	}
	if err != nil {
		p.syntax(err)
		return false
	}
	if err := dec.Decode(&more); err == nil {
		p.problem(more.Line, "a second document: one file is one document")
	} else if !errors.Is(err, io.EOF) {
		p.syntax(err)
	}
	p.walk(&root, 0)
	return len(p.problems) == 0
}

// syntax is what the YAML library says, which has the number of the line in its words.
func (p *parse) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if _, scan := fmt.Sscanf(text, "line %d:", &line); scan == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	p.problem(line, "is not YAML: %s", text)
}

// walk refuses what YAML allows and nobody needs here: each of them can make a text mean another thing than it seems.
func (p *parse) walk(node *yaml.Node, depth int) {
	switch {
	case depth > maxConfigDepth:
		p.problem(node.Line, "is nested too deep")
		return
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		p.problem(node.Line, "anchors and aliases are not understood here: write the value itself")
		return
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null" && node.Value != "":
		p.problem(node.Line, "%s says nothing: leave the line out", node.Value)
	case node.Style&yaml.TaggedStyle != 0:
		p.problem(node.Line, "tags are not understood here: write the value without %s", node.Tag)
	}
	if node.Kind == yaml.MappingNode {
		p.keys(node)
	}
	for _, child := range node.Content {
		p.walk(child, depth+1)
	}
}

// keys refuses keys that are no names, and those that occur twice in whatever spelling.
func (p *parse) keys(node *yaml.Node) {
	seen := make(map[string]int)
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		plain := strings.ToLower(strings.ReplaceAll(key.Value, "_", ""))
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str" || plain == "" || strings.ContainsAny(plain[:1], "0123456789[<"):
			p.problem(key.Line, "a key that is no name")
		case seen[plain] > 0:
			p.problem(key.Line, "%s is there twice: line %d has it too", key.Value, seen[plain])
		default:
			seen[plain] = key.Line
		}
	}
}

// Unmarshal notes where each message is written, and completes the names of enum values, which people write short.
func (p *parse) Unmarshal(node *yaml.Node, message proto.Message) (bool, error) {
	p.nodes[message] = node
	if node.Kind != yaml.MappingNode {
		return false, nil
	}
	_, limits := message.(*configv1.AgentLimits)
	fields := message.ProtoReflect().Descriptor().Fields()
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		if limits && value.Kind == yaml.ScalarNode && value.Value == "0" {
			p.problem(value.Line, "%s: 0 would not mean none but the default: write 1 or more, or leave the line out", key)
		}
		field := fields.ByTextName(key)
		if field == nil {
			field = fields.ByJSONName(key)
		}
		if field == nil || field.Enum() == nil || value.Kind != yaml.ScalarNode {
			continue
		}
		full, known := enumName(field.Enum(), value.Value)
		if !known {
			p.problem(value.Line, "%s: %q is none of %s", key, withoutKeys(value.Value), strings.Join(enumNames(field.Enum()), ", "))
			full = string(field.Enum().Values().Get(0).Name()) // so that what else is wrong is found
		}
		value.Value, value.Tag = full, "!!str"
	}
	return false, nil
}

// enumName is the full name of a value that is written short, with dashes or in full.
func enumName(enum protoreflect.EnumDescriptor, text string) (string, bool) {
	plain := strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
	for i := range enum.Values().Len() {
		name := string(enum.Values().Get(i).Name())
		if i > 0 && (name == plain || strings.TrimPrefix(name, enumPrefix(enum)) == plain) {
			return name, true
		}
	}
	return "", false
}

// enumPrefix is the prefix that all names of an enum share: the name of its first value without its last word.
func enumPrefix(enum protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(enum.Values().Get(0).Name()), "UNSPECIFIED")
}

func enumNames(enum protoreflect.EnumDescriptor) []string {
	var out []string
	for i := 1; i < enum.Values().Len(); i++ {
		short := strings.TrimPrefix(string(enum.Values().Get(i).Name()), enumPrefix(enum))
		out = append(out, strings.ToLower(strings.ReplaceAll(short, "_", "-")))
	}
	return out
}

// reported takes the errors of the decoder, without the line of the file that each of them repeats: what stands there may
// be a key that was put into the wrong file.
func (p *parse) reported(err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return
	case !ok:
		p.problem(1, "%v", err)
		return
	}
	rule := regexp.MustCompile(`^\S+: .*\([a-z0-9_.]+\)$`)
	plain := strings.NewReplacer("strconv.ParseUint: parsing ", "", "strconv.ParseInt: parsing ", "", "in list [, ", "in list [")
	unread := make(map[string]bool) // places whose value could not be read: that it breaks a rule as well says nothing
	for _, one := range joined.Unwrap() {
		first, _, _ := strings.Cut(one.Error(), "\n")
		where, text, _ := strings.Cut(strings.TrimPrefix(first, p.path+":"), " ")
		line := 1
		_, _ = fmt.Sscanf(where, "%d:", &line)
		if !rule.MatchString(text) {
			unread[where] = true
		} else if unread[where] {
			continue
		}
		if !strings.HasPrefix(text, "unknown field") { // whose words are names
			text = withoutKeys(text)
		}
		p.problem(line, "%s", plain.Replace(text))
	}
}

// asValidator has the method that the decoder asks for.
type asValidator struct{ validator protovalidate.Validator }

// Validate checks a message against its rules.
func (v asValidator) Validate(message proto.Message) error { return v.validator.Validate(message) }

// line is where a field of a message is written, or the message where the field is left out.
func (p *parse) line(message proto.Message, field string) int {
	node := p.nodes[message]
	if node == nil {
		return 1
	}
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		if strings.ReplaceAll(strings.ToLower(node.Content[i].Value), "_", "") == strings.ReplaceAll(field, "_", "") {
			return node.Content[i].Line
		}
	}
	return node.Line
}

// unread says whether a message has a key that nobody knows, which may be one that seems to be left out.
func (p *parse) unread(message proto.Message) bool {
	node := p.nodes[message]
	if node == nil || node.Kind != yaml.MappingNode {
		return true
	}
	fields := message.ProtoReflect().Descriptor().Fields()
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i].Value; fields.ByTextName(key) == nil && fields.ByJSONName(key) == nil {
			return true
		}
	}
	return false
}
