package setting

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/plan"
)

// CheckCredential refuses a user name or password that no broker knows: a file or an editor has added to it. Its errors
// do not show the text.
func CheckCredential(text string) error {
	const spelled = "; if a blank is meant, write it as %20 in the URL"
	if strings.Trim(text, " ") != text {
		return errors.New("begins or ends with a blank" + spelled)
	}
	return checkCharacters(text)
}

func checkCharacters(text string) error {
	const mark = "\ufeff"
	switch i := strings.IndexFunc(text, unicode.IsControl); {
	case strings.HasPrefix(text, mark):
		return errors.New("begins with a byte order mark (U+FEFF): save the file without one")
	case !utf8.ValidString(text):
		return errors.New("is not UTF-8: save the file as UTF-8")
	case i >= 0:
		r, _ := utf8.DecodeRuneInString(text[i:])
		return fmt.Errorf("has a control character (%U)", r)
	}
	return nil
}

// checkUserinfo checks user and password of a URL.
func checkUserinfo(url string) error {
	if err := checkCharacters(plan.User(url)); err != nil {
		return fmt.Errorf("the user %w", err)
	}
	if err := checkCharacters(plan.Password(url)); err != nil {
		return fmt.Errorf("the password %w", err)
	}
	return nil
}

func credential(field func(*Values) *string) setter {
	return func(s *Values, t string) error {
		*field(s) = t
		return CheckCredential(t)
	}
}

func addressOf(field func(*Values) *string) setter {
	set := filled(field)
	return func(s *Values, t string) error { return errors.Join(set(s, t), checkUserinfo(t)) }
}

func setManagementURL(s *Values, t string) error {
	if err := brokerside.CheckManagement(t); err != nil {
		return fmt.Errorf("%w: write http://HOST:PORT, with the path of Jolokia if it is not the usual one", err)
	}
	s.ManagementURL = t
	return checkUserinfo(t)
}
