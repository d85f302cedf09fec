package term

import "strings"

const (
	gap         = 2
	leastColumn = 8
)

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Style Style
}

// Text makes a plain cell.
func Text(text string) Cell { return Cell{Text: text} }

// Table is rows under a header. Cells may hold foreign text.
type Table struct {
	Header    []string
	Rows      [][]Cell
	Shrink    []int // columns that may be cut where the window is too narrow; ids are never among them
	Indent    int
	DropEmpty bool // leave out columns without any text
}

// Table writes a table. On a terminal it is cut to fit; elsewhere nothing is cut.
func (s *Screen) Table(t Table) {
	if len(t.Rows) == 0 {
		return
	}
	shown := t.columns()
	cells := t.clean()
	widths := t.widths(cells, shown)
	if s.Terminal {
		t.squeeze(widths, shown, s.Width)
	}
	if len(t.Header) > 0 {
		header := make([]Cell, len(t.Header))
		for i, text := range t.Header {
			header[i] = Cell{Text: strings.ToUpper(text), Style: Dim}
		}
		s.row(header, shown, widths, t.Indent)
	}
	for _, row := range cells {
		s.row(row, shown, widths, t.Indent)
	}
}

// columns lists the columns to write.
func (t Table) columns() []int {
	count := len(t.Header)
	for _, row := range t.Rows {
		count = max(count, len(row))
	}
	var shown []int
	for i := range count {
		used := !t.DropEmpty
		for _, row := range t.Rows {
			used = used || (i < len(row) && row[i].Text != "")
		}
		if used {
			shown = append(shown, i)
		}
	}
	return shown
}

// clean makes all cells visible.
func (t Table) clean() [][]Cell {
	rows := make([][]Cell, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = make([]Cell, len(row))
		for j, cell := range row {
			rows[i][j] = Cell{Text: Visible(cell.Text), Style: cell.Style}
		}
	}
	return rows
}

func (t Table) widths(rows [][]Cell, shown []int) map[int]int {
	widths := map[int]int{}
	for _, i := range shown {
		if i < len(t.Header) {
			widths[i] = Width(t.Header[i])
		}
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], Width(row[i].Text))
			}
		}
	}
	return widths
}

// squeeze takes columns from the widest of those that may be cut, until the table fits.
func (t Table) squeeze(widths map[int]int, shown []int, window int) {
	total := t.Indent - gap
	for _, i := range shown {
		total += widths[i] + gap
	}
	for ; total > window; total-- {
		widest := -1
		for _, i := range t.Shrink {
			if widths[i] > leastColumn && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (s *Screen) row(row []Cell, shown []int, widths map[int]int, indent int) {
	var line strings.Builder
	line.WriteString(strings.Repeat(" ", indent))
	pad := 0
	for _, i := range shown {
		cell := Cell{}
		if i < len(row) {
			cell = row[i]
		}
		text := cell.Text
		if s.Terminal {
			text = Fit(text, widths[i])
		}
		if text != "" {
			line.WriteString(strings.Repeat(" ", pad))
			pad = 0
			line.WriteString(s.Paint(cell.Style, text))
		}
		pad += widths[i] - Width(text) + gap
	}
	s.Print(line.String() + "\n")
}

// Facts writes pairs of a label and a value, one a line, the values under each other.
func (s *Screen) Facts(indent int, pairs ...[2]string) {
	t := Table{Indent: indent}
	for _, pair := range pairs {
		if pair[1] != "" {
			t.Rows = append(t.Rows, []Cell{{Text: pair[0], Style: Dim}, {Text: pair[1]}})
		}
	}
	s.Table(t)
}
