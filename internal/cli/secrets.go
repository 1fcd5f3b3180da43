package cli

import (
	"slices"
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
	for _, f := range flagTexts(args) {
		if f.name == "user" {
			user = f.value
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
	for _, f := range flagTexts(args) {
		note(f.name, f.value)
	}
	return s
}

// hasPassword tells whether a password is given beside the user, whose name may hold a colon then.
func hasPassword(args []string, environ config.Environment) bool {
	return environ["PERFMQ_PASSWORD"]+environ["PERFMQ_PASSWORD_FILE"] != "" ||
		slices.ContainsFunc(flagTexts(args), func(f givenText) bool {
			return f.name == "password" || f.name == "password-file"
		})
}

// givenText is a flag with its value, or an argument without a flag.
type givenText struct{ name, value string }

// flagTexts splits arguments without knowledge of the flags: an argument after a flag counts both as its value and as
// an argument of its own.
func flagTexts(args []string) (list []givenText) {
	before := ""
	for _, arg := range args {
		name, ok := strings.CutPrefix(arg, "--")
		if !ok {
			list = append(list, givenText{before, arg}, givenText{"", arg})
			before = ""
			continue
		}
		name, value, attached := strings.Cut(name, "=")
		if attached {
			list = append(list, givenText{name, value})
			name = ""
		}
		before = name
	}
	return list
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
