package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

// verifyCommand is perfmq verify.
func (a *app) verifyCommand() *cobra.Command {
	in := a.newInput(config.Verdicts())
	var jsonFile string
	cmd := &cobra.Command{
		Use:   "verify [flags] FILE|DIR...",
		Short: "Find lost, duplicated and damaged messages across processes",
		Args:  needArguments,
		RunE: func(_ *cobra.Command, args []string) error {
			v, errs := in.given.Values(in.table)
			if len(errs) > 0 {
				return a.usage(errs...)
			}
			return a.join(args, v, jsonFile)
		},
	}
	flags := cmd.Flags()
	in.addTo(flags)
	flags.StringVar(&jsonFile, "json", "", "write JSON to `FILE`; - is standard output")
	return cmd
}

// join reads the sides and prints their joint verification.
func (a *app) join(paths []string, v *config.Values, jsonFile string) error {
	paths = verifyFiles(paths)
	sides, errs := readSides(paths)
	if jsonFile != "" && jsonFile != run.Standard {
		for _, path := range paths {
			if config.SameFile(path, jsonFile) {
				errs = append(errs, plan.Wrong("name another file", "--json %s is read", path))
			}
		}
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	console := a.Stdout
	if jsonFile == run.Standard {
		console = a.Stderr
	}
	joined, err := a.printVerification(console, verify.Judge(sides...), v.Plan.Allow)
	if jsonFile != "" {
		if err := a.writeJSON(jsonFile, joined); err != nil {
			return a.notWritten(err)
		}
	}
	return err
}

// printVerification prints a verification without secrets, which it returns, and its problems.
func (a *app) printVerification(to io.Writer, v *verify.Result, allow verify.Allow) (*verify.Result, error) {
	v = safetext.Clean(a.secrets, v)
	allowed := uint64(0)
	if allow.Lost {
		allowed = v.Total.Left
	}
	problems := result.Texts(v.Findings(allow, allowed), result.Problem)
	if _, err := io.WriteString(to, report.Verification(v, problems)); err != nil {
		return v, a.notWritten(err)
	}
	for _, problem := range problems {
		a.errors.write(problem, "")
	}
	if len(problems) > 0 {
		a.status = result.StatusFailed
		return v, errReported
	}
	return v, nil
}

// verifyFiles returns paths with each folder replaced by the verification file in it.
func verifyFiles(paths []string) []string {
	files := allRuns(paths)
	for i, path := range files {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			files[i] = filepath.Join(path, result.VerifyFile)
		}
	}
	return files
}

// readSides returns all sides, or the errors of all files.
func readSides(paths []string) (sides []*verify.Side, errs []error) {
	refuse := func(hint, format string, args ...any) {
		errs = append(errs, plan.Wrong(hint, format, args...))
	}
	type part struct {
		run   int64
		shard int
	}
	from := map[part]string{}
	absent := map[string]bool{"producer": true, "consumer": true}
	for _, path := range paths {
		side, err := verify.ReadFile(path)
		var fe *inputfile.Error
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Base(path) == result.VerifyFile:
			refuse("name a folder of --result, or a file of --verify-file", "%v", err)
			continue
		case errors.As(err, &fe):
			refuse(fe.Hint, "%v", err)
			continue
		case from[part{side.ID, side.Shard}] != "":
			refuse("", "%s and %s are the same side of the same run", from[part{side.ID, side.Shard}], path)
			continue
		}
		from[part{side.ID, side.Shard}] = path
		absent["producer"] = absent["producer"] && len(side.Sent) == 0
		absent["consumer"] = absent["consumer"] && len(side.Received) == 0
		sides = append(sides, side)
	}
	for run, shards := range verify.Absent(sides) {
		if len(errs) == 0 {
			refuse("give the files of all shards", "shards of run %d are missing: %s", run,
				strings.Join(shards[:min(10, len(shards))], ", "))
		}
	}
	for _, role := range []string{"producer", "consumer"} {
		if len(errs) == 0 && absent[role] {
			refuse("give the files of all "+role+"s", "no file of a %s was given", role)
		}
	}
	return sides, errs
}
