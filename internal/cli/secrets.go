package cli

import (
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/safetext"
)

// learnSecrets returns the secrets in the arguments and the environment. It runs before anything is checked, because
// errors print arguments, and a password may be misplaced, for example in a URL given as destination. The name of a
// flag decides whether its value is secret, so that mistyped flags are covered, too.
func learnSecrets(args []string, environ config.Environment) *safetext.Secrets {
	s := &safetext.Secrets{}
	user := environ["PERFMQ_USER"]
	for name, value := range flagTexts(args) {
		if name == "user" {
			user = value
		}
	}
	if name, password, ok := strings.Cut(user, ":"); ok && !hasPassword(args, environ) { // USER:PASSWORD, as in curl
		s.Add(name, password)
	}
	note := func(name, value string) {
		if config.SecretName(name) {
			s.Add(user, value)
		} else {
			s.AddURL(value, strings.HasSuffix(strings.ToLower(name), "url"))
		}
	}
	for name, value := range environ {
		note(name, value)
	}
	for name, value := range flagTexts(args) {
		note(name, value)
	}
	return s
}

// hasPassword reports whether a password is given beside the user: the name may hold a colon then.
func hasPassword(args []string, environ config.Environment) bool {
	given := environ["PERFMQ_PASSWORD"]+environ["PERFMQ_PASSWORD_FILE"] != ""
	for name := range flagTexts(args) {
		given = given || name == "password" || name == "password-file"
	}
	return given
}

// flagTexts splits arguments into flags and values without knowledge of the flags: an argument after a flag counts both
// as its value and as an argument of its own, without a name.
func flagTexts(args []string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		before := ""
		for _, arg := range args {
			name, ok := strings.CutPrefix(arg, "--")
			name, value, attached := strings.Cut(name, "=")
			switch {
			case !ok && (!yield(before, arg) || !yield("", arg)), ok && attached && !yield(name, value):
				return
			case !ok || attached:
				name = ""
			}
			before = name
		}
	}
}

// completing returns the arguments of a request for completion without secrets, because cobra prints them in an error.
func completing(args []string, secrets *safetext.Secrets) []string {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return args
	}
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = secrets.Field(arg)
	}
	return list
}
