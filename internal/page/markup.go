package page

import (
	"bytes"
	"fmt"
	"html"
	"slices"
)

// markup is HTML or XML that grows. Pages are written by functions, not by html/template: a program that may look up
// methods by name keeps the methods of all its types, which are a tenth of perfmq's binary.
type markup struct{ bytes.Buffer }

// put writes a format. Its strings are escaped, as the text of an element and as an attribute in double quotes.
func (m *markup) put(format string, args ...any) {
	for i, a := range args {
		if text, is := a.(string); is {
			args[i] = html.EscapeString(text)
		}
	}
	_, _ = fmt.Fprintf(m, format, args...) // it grows
}

// each writes a format for each text.
func (m *markup) each(format string, texts []string) {
	for _, text := range texts {
		m.put(format, text)
	}
}

// page writes the whole page.
func (m *markup) page(v *view) {
	m.put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	m.WriteString(v.policy)
	m.put(`
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="perfmq">
`)
	if v.Live != "" {
		m.put(`<meta name="live" content="%s">`, v.Live)
	}
	m.put("\n<title>%s - perfmq report</title>\n", v.Title)
	m.WriteString(v.styles + "\n" + licence())
	m.put("\n</head>\n<body>\n<header><div id=\"head\">")
	m.head(v)
	m.put("</div>")
	switch v.Live {
	case "":
	case ended:
		m.put(`<p id="live" role="status">The run has ended</p>`)
	default:
		m.put(`<p id="live" role="status">Live</p>`)
	}
	m.put("</header>\n<nav id=\"contents\" aria-label=\"Contents\">")
	m.contents(v)
	m.put("</nav>\n<main>\n<div id=\"top\">")
	m.top(v)
	m.put("</div>\n")
	if v.Several {
		m.put(`<details id="over-time" class="fold"%s>`, attribute("open", !v.Fold))
		m.put("<summary><h2>Over time</h2></summary>")
	}
	m.put(`<section id="charts" aria-label="Charts"><noscript><p class="note">`)
	m.put(`The charts need JavaScript; the tables do not.</p></noscript></section>`)
	if v.Several {
		m.put("</details>\n<div id=\"bottom\">")
	} else {
		m.put("\n<div id=\"bottom\" class=\"tables\">")
	}
	m.bottom(v)
	m.put("</div>\n</main>\n<script type=\"application/json\" id=\"data\">")
	m.Write(v.data)
	m.put("</script>\n")
	for _, script := range v.scripts {
		m.WriteString(script + "\n")
	}
	m.put("</body>\n</html>\n")
}

// attributeText is markup within a tag. It is not escaped.
type attributeText string

func attribute(name string, is bool) attributeText {
	if is {
		return attributeText(" " + name)
	}
	return ""
}

func (m *markup) head(v *view) {
	m.put("<p class=\"brand\">perfmq report</p><h1>%s</h1>\n", v.Title)
	if !v.Several {
		for i := range v.Stories {
			m.run(&v.Stories[i])
		}
	}
}

func (m *markup) contents(v *view) {
	link := func(id, text string) { m.put("<a href=\"#%s\">%s</a>\n", id, text) }
	links := func(tables []Table) {
		for i := range tables {
			link(tables[i].ID(), tables[i].Title)
		}
	}
	link("verdict", "Verdict")
	charts := "charts"
	if v.Several {
		link("several", "Overview")
		charts = "over-time"
	}
	links(v.Top)
	link(charts, "Charts")
	links(v.Bottom)
	if v.Several {
		link("runs", "Runs")
		return
	}
	for _, s := range v.Stories {
		links(s.Tables)
	}
}

func (m *markup) top(v *view) {
	m.put(`<section id="verdict" aria-label="Verdict">`)
	if v.Several {
		if v.Lead != nil {
			m.verdict(v.Lead)
		}
		m.each("\n<p>%s</p>", v.Summaries)
		m.put("</section>\n<section id=\"several\" aria-label=\"Charts of all runs\"></section>")
	} else {
		for i := range v.Stories {
			m.verdict(&v.Stories[i])
		}
		m.put("</section>")
	}
	m.put("\n<div class=\"tables\">")
	for i := range v.Top {
		m.titled(&v.Top[i], v.Top[i].Folded, "")
	}
	m.put("</div>")
}

// manyRows is the number of rows up to which a table below the charts is not folded.
const manyRows = 6

func (m *markup) bottom(v *view) {
	for i := range v.Bottom {
		m.titled(&v.Bottom[i], v.Fold || v.Bottom[i].Folded, map[bool]string{true: "fold"}[v.Fold])
	}
	if v.Several {
		m.runs(v)
		return
	}
	for _, s := range v.Stories {
		for i := range s.Tables {
			t := &s.Tables[i]
			m.titled(t, t.Folded || len(t.Rows) > manyRows, "")
		}
	}
}

// runs writes the part of a page of several runs that has each of them.
func (m *markup) runs(v *view) {
	if len(v.Stories) == 0 {
		return
	}
	m.put("<details id=\"runs\" class=\"fold\"%s><summary><h2>Each run (%d)</h2></summary>\n",
		attribute("open", !v.Fold), len(v.Stories))
	for i := range v.Stories {
		s := &v.Stories[i]
		m.put(`<details id="run-%d" class="run"><summary><h3>%s</h3> <span class="%s">%s</span></summary>`,
			i, s.Name, s.Mark, s.Verdict)
		m.run(s)
		m.verdict(s)
		for k := range s.Tables {
			t := &s.Tables[k]
			m.section(t, t.Folded || len(t.Rows) > manyRows, "")
		}
		m.put("</details>\n")
	}
	m.put("</details>")
}

// run writes the head of a run.
func (m *markup) run(s *story) {
	if len(s.Head) > 0 {
		m.put(`<p class="run">`)
		m.each("<span>%s</span> ", s.Head)
		m.put("</p>\n")
	}
	if len(s.Repeat) > 0 {
		m.put(`<dl class="repeat"><dt>Repeat this run</dt>`)
		m.each(`<dd><code tabindex="0">%s</code> <button type="button" data-copy>Copy</button></dd>`, s.Repeat)
		m.put("</dl>")
	}
}

func (m *markup) verdict(s *story) {
	m.put(`<p class="verdict %s"><strong>%s</strong>`, s.Mark, s.Verdict)
	if s.Reason != "" {
		m.put(" <span>%s</span>", s.Reason)
	}
	m.put("</p>\n")
	if len(s.Tiles) > 0 {
		m.put(`<ul class="tiles">`)
		for _, t := range s.Tiles {
			if m.put("<li"); t.Mark != "" {
				m.put(` class="%s"`, t.Mark)
			}
			m.put("><span>%s</span> <b>%s</b></li>", t.Label, t.Value)
		}
		m.put("</ul>\n")
	}
	if len(s.Problems) > 0 {
		m.put(`<div class="problems">`)
		m.list(s.Problems)
		m.put("</div>\n")
	}
	m.each("<p class=\"limit\"><strong>Limit:</strong> %s</p>\n", s.Limits)
	if len(s.Numbers) > 0 {
		m.put(`<p class="numbers">`)
		m.each("%s ", s.Numbers)
		m.put("</p>\n")
	}
	if len(s.Findings)+len(s.Warnings) == 0 {
		return
	}
	m.put(`<div class="notes">`)
	for _, part := range []struct {
		title string
		texts []string
	}{{"Warnings", s.Warnings}, {"Findings", s.Findings}} {
		if len(part.texts) > 0 {
			m.put("<div><h2 class=\"small\">%s</h2>", part.title)
			m.list(part.texts)
			m.put("</div>\n")
		}
	}
	m.put("</div>")
}

func (m *markup) list(texts []string) {
	m.put("<ul>")
	m.each("<li>%s</li>", texts)
	m.put("</ul>")
}

// titled writes a table that the contents link to.
func (m *markup) titled(t *Table, folded bool, class string) {
	attributes := ` id="` + html.EscapeString(t.ID()) + `"`
	if class != "" {
		attributes += ` class="` + class + `"`
	}
	m.section(t, folded, attributeText(attributes))
}

func (m *markup) section(t *Table, folded bool, attributes attributeText) {
	if folded {
		m.put("<details%s><summary><h2>%s</h2></summary>", attributes, t.Title)
		m.table(t)
		m.put("</details>\n")
		return
	}
	m.put("<section%s><h2>%s</h2>", attributes, t.Title)
	m.table(t)
	m.put("</section>\n")
}

// longCell and manyColumns are the characters of a cell, and the columns of a table of words, that get another style.
const (
	longCell    = 30
	manyColumns = 10
)

func (m *markup) table(t *Table) {
	const take = `<button type="button" data-as="%s" aria-label="%s of %s">%s</button>`
	m.put(`<p class="take">`+take+" "+take, "csv", "CSV", t.Title, "CSV", "json", "JSON", t.Title, "JSON")
	m.put("</p>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"%s\">", t.Title)
	m.put("<table%s><thead>", t.class())
	if t.Send > 0 {
		m.put(`<tr><td colspan="%d"></td>`, t.Named())
		m.put(`<th colspan="%d" scope="colgroup" class="over">Send</th>`, t.Send)
		m.put(`<th colspan="%d" scope="colgroup" class="over">Receive</th></tr>`, t.Receive)
	}
	m.put("<tr>")
	for _, head := range t.Head {
		if head == "" {
			m.put("<td></td>")
		} else {
			m.put(`<th scope="col">%s</th>`, head)
		}
	}
	m.put("</tr></thead>\n<tbody>")
	for _, row := range t.Rows {
		m.put("<tr>")
		for i, cell := range row {
			switch {
			case i == 0:
				m.put(`<th scope="row">%s</th>`, cell)
			case len(cell) > longCell:
				m.put(`<td class="long">%s</td>`, cell)
			case slices.Contains([]string{"failed", "passed"}, cell):
				m.put(`<td class="%s">%s</td>`, cell, cell)
			default:
				m.put("<td>%s</td>", cell)
			}
		}
		m.put("</tr>\n")
	}
	if m.put("</tbody></table></div>"); t.Note != "" {
		m.put(`<p class="note">%s</p>`, t.Note)
	}
}

// class returns the attribute of the style of a table.
func (t *Table) class() attributeText {
	switch {
	case t.Words && len(t.Head) > manyColumns:
		return ` class="words many"`
	case t.Words:
		return ` class="words"`
	case t.Send > 0:
		return ` class="many"`
	}
	return ""
}
