package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

// optionSendTimeout is the option of a protocol with the meaning of --send-timeout.
const optionSendTimeout = "send-timeout"

// optionTransactional is the option of a protocol that sends half messages.
const optionTransactional = "transactional"

// sendTimeout refuses --send-timeout together with a different value of the protocol's option.
func (r *resolver) sendTimeout(producers *plan.Broker) {
	if !r.Has(optionSendTimeout) || producers == nil || producers.Options == nil ||
		!slices.ContainsFunc(r.Options, func(o string) bool { return strings.HasPrefix(o, optionSendTimeout+"=") }) {
		return
	}
	for _, o := range driver.Describe(producers.Options) {
		if d, ok := o.Value.(time.Duration); ok && o.Name == optionSendTimeout && d != r.SendTimeout {
			r.refuse("leave one of them out", "--send-timeout %v and -o send-timeout=%v contradict each other", r.SendTimeout, d)
		}
	}
}

// inDoubt refuses --in-doubt resend for half messages.
func (r *resolver) inDoubt(producers *plan.Broker) {
	if r.InDoubt != setting.DoubtResend || producers == nil || producers.Options == nil {
		return
	}
	for _, o := range driver.Describe(producers.Options) {
		if on, ok := o.Value.(bool); ok && on && o.Name == optionTransactional {
			r.refuse("leave one of them out", "--in-doubt resend does not work with -o transactional=true: a half message that "+
				"is sent again is another one for the broker, which checks both back")
		}
	}
}
