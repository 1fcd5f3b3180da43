package drivertest_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// duty matches sentences of the contract that oblige somebody.
var duty = regexp.MustCompile(`^[A-Z\[].*\b(must|never|exactly|nothing|refuses|soon|unless|does not|do not|no other|` +
	`no more|unchanged|order|returns nil|return nil|at most)\b`)

// contract is testdata/contract.txt: each sentence of package driver that obliges a driver, with the names of mutants
// that break it. A sentence that obliges somebody else, or that the suite cannot see, has "- " and the reason.
func contract(t *testing.T) map[string]string {
	t.Helper()
	text := musttest.Get(os.ReadFile("testdata/contract.txt"))(t)
	table := map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		sentence, mutants, _ := strings.Cut(entry, "\n")
		require.NotEmptyf(t, mutants, "no line follows the sentence %q", sentence)
		require.NotContains(t, table, sentence)
		table[sentence] = mutants
	}
	return table
}

// TestContractHasMutants: each sentence of the contract that obliges a driver has a mutant, and the table has no
// sentence and no mutant that does not exist.
func TestContractHasMutants(t *testing.T) {
	known := map[string]bool{}
	for _, m := range mutants() {
		known[m.name] = true
	}
	table, all := contract(t), sentences(t)
	for sentence, mutants := range table {
		if !slices.Contains(all, sentence) {
			t.Errorf("testdata/contract.txt: package driver does not have this sentence (any more): %s", sentence)
		}
		if reason, none := strings.CutPrefix(mutants, "- "); none {
			require.NotEmpty(t, reason)
			continue
		}
		for name := range strings.SplitSeq(mutants, "; ") {
			require.Truef(t, known[name], "there is no mutant %q, which testdata/contract.txt has for %q", name, sentence)
		}
	}
	for _, sentence := range all {
		if _, listed := table[sentence]; !listed && duty.MatchString(sentence) {
			t.Errorf("this sentence of package driver obliges somebody. Write a mutant that breaks it, and put both into "+
				"testdata/contract.txt: %s", sentence)
		}
	}
}

// sentences returns the sentences of the comments of package driver on the types and constants that it exports.
func sentences(t *testing.T) []string {
	t.Helper()
	files := musttest.Get(filepath.Glob("../*.go"))(t)
	var list []string
	add := func(comments ...*ast.CommentGroup) {
		for _, c := range comments {
			list = append(list, split(c.Text())...)
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := musttest.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))(t)
		add(f.Doc)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return false
			case *ast.GenDecl:
				add(n.Doc)
			case *ast.TypeSpec:
				if !n.Name.IsExported() {
					return false
				}
				add(n.Doc, n.Comment)
			case *ast.ValueSpec:
				add(n.Doc, n.Comment)
			case *ast.Field:
				if len(n.Names) > 0 && n.Names[0].IsExported() {
					add(n.Doc, n.Comment)
				}
			}
			return true
		})
	}
	slices.SortFunc(list, cmp.Compare)
	return slices.Compact(list)
}

// split splits a comment into its sentences.
func split(text string) (list []string) {
	end := regexp.MustCompile(`[.:] ["A-Z\[]`)
	for paragraph := range strings.SplitSeq(regexp.MustCompile(`(?m)^#.*$|^  - `).ReplaceAllString(text, "\n"), "\n\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		for at := end.FindStringIndex(paragraph); at != nil; at = end.FindStringIndex(paragraph) {
			list = append(list, paragraph[:at[0]+1])
			paragraph = paragraph[at[0]+2:]
		}
		if paragraph != "" {
			list = append(list, paragraph)
		}
	}
	return list
}
