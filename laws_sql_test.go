package throwbar_test

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sqlIn returns the SQL files below a folder without their comments.
func sqlIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	comment := regexp.MustCompile(`--[^\n]*`)
	files := map[string]string{}
	for _, p := range tracked(t) {
		if path.Ext(p) == ".sql" && under(p, folder) {
			files[p] = comment.ReplaceAllString(string(read(t, p)), "")
		}
	}
	return files
}

// The SQLite driver binds $1, $2 … in the order in which they first appear, PostgreSQL by their number.
func TestLawParametersInOrder(t *testing.T) {
	t.Parallel()
	parameter := regexp.MustCompile(`\$(\d+)`)
	for p, text := range sqlIn(t, "store") {
		for statement := range strings.SplitSeq(text, ";") {
			next := 1
			for _, m := range parameter.FindAllStringSubmatch(statement, -1) {
				n, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				if n > next {
					t.Errorf("%s: $%d before $%d: %s", p, n, next, strings.TrimSpace(statement))
				}
				next = max(next, n+1)
			}
		}
	}
}

// One generated package runs on both engines, so the queries keep to what both read alike.
func TestLawPortableQueries(t *testing.T) {
	t.Parallel()
	for what, pattern := range map[string]string{
		"a list parameter is JSON text: sqlc.slice fails at run time":     `sqlc\.slice`,
		"cast(x as type), which both engines read":                        `::`,
		"a time is a parameter: a query has no clock of its own":          `(?i)\bnow\(\)|current_timestamp`,
		"the column is bigint UTC milliseconds, text or bytea":            `(?i)\b(timestamptz?|jsonb?|uuid|serial)\b`,
		"a lock clause belongs to one engine":                             `(?i)for update`,
		"a row comparison gets wrong parameter types: write it out":       `\(\s*\w+\s*,\s*\w+\s*\)\s*[<>]`,
		"an optional filter needs its type: cast(sqlc.narg('x') as text)": `(?i)sqlc\.narg\([^)]*\)\s+is\s+null`,
	} {
		re := regexp.MustCompile(pattern)
		for p, text := range sqlIn(t, "store/queries") {
			if m := re.FindString(text); m != "" {
				t.Errorf("%s: %q: %s", p, m, what)
			}
		}
	}
}
