package setting

import (
	"regexp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
)

// envPrefix begins the names of all variables that are ours.
const envPrefix = "PERFMQ_"

// Environment holds the variables that are ours and not empty, and [JobIndex].
type Environment map[string]string

// NewEnvironment keeps of an environment, as os.Environ returns it, the variables that are ours or that we read. It
// drops one line end at the end of a value: Kubernetes makes variables of whole files.
func NewEnvironment(environ []string) Environment {
	e := Environment{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
		if (strings.HasPrefix(name, envPrefix) || name == JobIndex) && value != "" {
			e[name] = value
		}
	}
	return e
}

// Lookup returns the variable that sets the flag and its values; a list is separated by commas.
func (e Environment) Lookup(s *Setting) (variable string, texts []string) {
	for _, variable := range s.Variables() {
		value, ok := e[variable]
		switch {
		case ok && s.List:
			return variable, strings.Split(value, ",")
		case ok:
			return variable, []string{value}
		}
	}
	return "", nil
}

// Unknown finds variables that begin like ours but set nothing: most likely mistyped.
func (e Environment) Unknown() []error {
	known := Variables()
	// Kubernetes gives every pod such variables for a service whose name begins with perfmq.
	orchestrated := regexp.MustCompile(`_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?$|_PORT(_[0-9]+_[A-Z]+(_[A-Z]+)?)?$`)
	var errs []error
	names := make([]string, 0, len(e))
	for name := range e {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name == JobIndex || slices.Contains(known, name) || ofCommands(name) || strings.HasPrefix(name, "PERFMQ_TEST_") ||
			orchestrated.MatchString(name) {
			continue
		}
		hint := nearest.Hint(name[len(envPrefix):], trimPrefix(known), envPrefix+"%s",
			"unset it; for each flag there is one variable, such as PERFMQ_MESSAGE_SIZE for --message-size")
		errs = append(errs, &plan.Mistake{Text: "unknown environment variable " + name, Hint: hint})
	}
	return errs
}

// ofCommands tells whether a variable is one that the commands of a scenario get, which may call perfmq.
func ofCommands(name string) bool {
	return name == envPrefix+"CELL" || name == envPrefix+"REPEAT" || strings.HasPrefix(name, envPrefix+"LABEL_")
}

func trimPrefix(names []string) []string {
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = strings.TrimPrefix(name, envPrefix)
	}
	return short
}
