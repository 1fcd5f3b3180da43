package safetext

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestSecretsInEverySpelling: a peer may echo a password as it likes.
func TestSecretsInEverySpelling(t *testing.T) {
	const user, password = "app", "h:nter/2 \"é\"\n\\%<&>"
	emoji := "pass\U0001f600word"
	var s Secrets
	s.Add(user, password)
	s.Add("", emoji)
	assert.Equal(t, "a *** b *** c ***", s.Line(`a pass\ud83d\ude00word b `+emoji+` c `+url.QueryEscape(emoji)))
	quoted := musttest.Get(json.Marshal(password))(t)
	for name, text := range map[string]string{
		"plain":        password,
		"path":         url.PathEscape(password),
		"query":        url.QueryEscape(password),
		"userinfo":     url.UserPassword(user, password).String(),
		"lower hex":    strings.ToLower(url.PathEscape(password)),
		"mixed hex":    strings.Replace(strings.ToLower(url.QueryEscape(password)), "%2f", "%2F", 1),
		"all hex":      fmt.Sprintf("%%%s", strings.Join(strings.Split(strings.TrimSpace(fmt.Sprintf("% x", password)), " "), "%")),
		"go quoted":    fmt.Sprintf("%q", password),
		"ascii quoted": fmt.Sprintf("%+q", password),
		"json":         string(quoted),
		"stomp":        `h\cnter/2 "é"\n\\%<&>`,
		"escaped":      Line(password),
		"basic":        base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
		"sasl plain":   base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + password)),
		"base64":       base64.RawURLEncoding.EncodeToString([]byte(password)),
	} {
		t.Run(name, func(t *testing.T) {
			got := s.Line("login failed: " + text + " is wrong")
			assert.Contains(t, got, Hidden)
			assert.NotContains(t, got, "nter", "a part of it")
			assert.NotContains(t, s.Field(text), "nter")
			for _, encoded := range []string{"aDpudGVyL", "YXBwOmg6bnRlci8y"} {
				assert.NotContains(t, got, encoded)
			}
		})
	}
}

func TestRedacted(t *testing.T) {
	for _, c := range []struct {
		name    string
		secrets []string
		in      string
		want    string
	}{
		{"without a secret", nil, "nothing to hide at amqp://h:5672", "nothing to hide at amqp://h:5672"},
		{"URL of somebody", nil, "go to amqp://u:hunter2@other:5672, please", "go to amqp://u@other:5672, please"},
		{"user alone", nil, "amqp://u@h", "amqp://u@h"},
		{"at in the password", nil, "amqp://u:p@ss@h", "amqp://u@h"},
		{"slash in the password", nil, "amqp://u:p/ss@h", "amqp://u@h"},
		{"two URLs", nil, "failover:(tcp://a:b@x:1,tcp://c:d@y:2)", "failover:(tcp://a@x:1,tcp://c@y:2)"},
		{"port and path with an at", nil, "http://h:80/a@b", "http://h@b"},
		{"settings", nil, "queue://Q?user=u&password=hunter2&x=1", "queue://Q?user=u&password=***&x=1"},
		{"other settings", nil, "jms.PassWord=a;transport.keyStorePassword=b token=c, accessKey=d", "jms.PassWord=***;transport.keyStorePassword=*** token=***, accessKey=d"},
		{"an empty setting", nil, "password=&x=1", "password=&x=1"},
		{"within a word", []string{"hunter2"}, "passwordhunter2!", "password***!"},
		{"short", []string{"pw"}, "the pw 'pw' is not in pws, xpw, pw", "the *** '***' is not in pws, xpw, ***"},
		{"one letter", []string{"a"}, "a bad day (a)", "*** bad day (***)"},
		{"digits", []string{"1000"}, "of 10000 messages 1000", "of 10000 messages ***"},
		{"signs", []string{":)"}, "say :) now", "say *** now"},
		{"nested", []string{"hunter", "hunter2"}, "hunter2 hunter", "*** ***"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Secrets
			for _, secret := range c.secrets {
				s.Add("", secret)
			}
			s.Add("", "")
			assert.Equal(t, c.want, s.Line(c.in))
		})
	}
}

func TestAddURL(t *testing.T) {
	for _, c := range []struct {
		url    string
		flag   bool
		hidden []string
	}{
		{"amqp://u:hunter2@h", false, []string{"hunter2"}},
		{"amqp://u:p%40ssw%2Frd@h", false, []string{"p@ssw/rd", "p%40ssw%2Frd", "p%40ssw%2frd"}},
		{"amqp://u:p@ss/wörd@h:1", false, []string{"p@ss/wörd"}},
		{"u:hunter2@h:5672", true, []string{"hunter2"}},
		{"amqp://h?user=x&password=hunter%202", false, []string{"hunter%202", "hunter 2"}},
		{"amqp://a:hunter2@h,b:1", false, []string{"hunter2"}},
		{"failover:(tcp://u:hunter2@a:1,tcp://v:other3@b:2?x=1)?y=2", true, []string{"hunter2", "other3"}},
	} {
		var s Secrets
		s.AddURL(c.url, c.flag)
		for _, text := range c.hidden {
			assert.Equal(t, "<***>", s.Line("<"+text+">"), "%s: %s", c.url, text)
		}
	}
	var s Secrets
	s.AddURL("u:hunter2@h:5672", false) // it may be anything
	s.AddURL("amqp://u@h", false)
	s.AddURL("amqp://h", true)
	assert.Equal(t, "hunter2", s.Line("hunter2"))
}

// TestRedactsBeforeItCuts: a password at the place where a text is cut is not shown by its half.
func TestRedactsBeforeItCuts(t *testing.T) {
	var s Secrets
	s.Add("", "hunter2-and-more")
	for at := range 40 {
		for _, limit := range []int{MaxLine, MaxField, 2 * MaxField} {
			for _, before := range []int{0, (limit - at) / 16 / 2, (limit - at) / 16} { // which redaction makes shorter
				text := strings.Repeat("hunter2-and-more", before)
				text += strings.Repeat("x", limit-at-len(text)) + "hunter2-and-more" + strings.Repeat("y", limit)
				require.NotContains(t, s.Line(text), "hunt")
				require.NotContains(t, s.Field(text), "hunt")
			}
		}
	}
}

// TestOddSecrets: any bytes can be a secret, and any length.
func TestOddSecrets(t *testing.T) {
	for _, secret := range []string{"hunter\xff2", strings.Repeat("long\xff", 16<<10)} {
		var s Secrets
		s.Add("u", secret)
		assert.Equal(t, "<***>", s.Field("<"+secret+">"), "%.20q", secret)
	}
}

// TestHugeTexts: the time does not grow with the square of the length.
func TestHugeTexts(t *testing.T) {
	var s Secrets
	s.Add("u", "hunter2")
	s.Add("", "pw")
	start := time.Now()
	for _, piece := range []string{"://", "=", "password=", "\n", " ", "pw", "hunter", "://a:b@", "@", "\x1b[2J", "é"} {
		text := strings.Repeat(piece, 20<<20/len(piece))
		assert.LessOrEqual(t, len(s.Line(text)), MaxLine+40)
		assert.LessOrEqual(t, len(s.Field(text)), MaxField+40)
		assert.Contains(t, s.Line("x"+text+"x"), "bytes left out")
	}
	assert.Less(t, time.Since(start), time.Minute)
}
