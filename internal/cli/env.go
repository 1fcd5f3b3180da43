package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
)

// envPrefix begins the names of all variables that are ours.
const envPrefix = "PERFMQ_"

// environment holds the variables that are ours and not empty.
type environment map[string]string

func newEnvironment(environ []string) environment {
	e := environment{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, envPrefix) && value != "" {
			e[name] = value
		}
	}
	return e
}

// variables returns the names under which the environment may set a flag, the usual one first: PERFMQ_MESSAGE_SIZE for
// --message-size, PERFMQ_CLIENT_ID for --clientID.
func variables(d *definition) []string {
	var names []string
	for _, name := range append([]string{d.name}, d.aliases...) {
		if strings.ToLower(name) == name { // camel case has an alias with a hyphen
			names = append(names, envPrefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
		}
	}
	return names
}

// lookup returns the variable that sets the flag and its values; a list is separated by commas.
func (e environment) lookup(d *definition) (variable string, texts []string) {
	for _, variable := range variables(d) {
		value, ok := e[variable]
		switch {
		case ok && d.list:
			return variable, strings.Split(value, ",")
		case ok:
			return variable, []string{value}
		}
	}
	return "", nil
}

// unknown finds variables that begin like ours but set nothing: most likely mistyped.
func (e environment) unknown(known []string) []error {
	// Kubernetes gives every pod such variables for a service whose name begins with perfmq.
	orchestrated := regexp.MustCompile(`_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?$|_PORT(_[0-9]+_[A-Z]+(_[A-Z]+)?)?$`)
	var errs []error
	names := make([]string, 0, len(e))
	for name := range e {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if slices.Contains(known, name) || strings.HasPrefix(name, "PERFMQ_TEST_") || orchestrated.MatchString(name) {
			continue
		}
		hint := "unset it; for each flag there is one variable, such as PERFMQ_MESSAGE_SIZE for --message-size"
		if n := nearest.Nearest(name[len(envPrefix):], trimPrefix(known)); n != "" {
			hint = "did you mean " + envPrefix + n + "?"
		}
		errs = append(errs, &plan.Mistake{Text: "unknown environment variable " + name, Hint: hint})
	}
	return errs
}

func trimPrefix(names []string) []string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = strings.TrimPrefix(name, envPrefix)
	}
	return short
}
