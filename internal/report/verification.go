package report

import (
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
)

// Verification returns the output of `perfmq verify`: the lines about verification of a console's summary.
func Verification(r *verify.Result, problems []string) string {
	var b strings.Builder
	b.WriteString("--- VERIFICATION\n")
	writeText(&b, "result", words.Outcome(len(problems) == 0), "")
	writeTotal(&b, "total sent", r.Sent, "")
	writeVerification(&b, r)
	writeList(&b, "--- warning:", r.Notes)
	writeList(&b, "--- problem:", problems)
	return b.String()
}

// writeVerification writes the counts of a verification. Expected, once, lost, duplicated, out of order and damaged are
// always written, as far as they can be known; the others only if they are not zero.
func writeVerification(b *strings.Builder, r *verify.Result) {
	if len(r.Scopes) == 0 {
		return
	}
	t := &r.Total
	line := func(always bool, label string, n uint64, kind verify.Kind, notes ...string) {
		if n == 0 {
			if always {
				writeTotal(b, "verified "+label, n, "")
			}
			return
		}
		if first := r.First(kind); first != "" {
			notes = append(notes, "first: "+first)
		}
		writeTotal(b, "verified "+label, n, oneLine(strings.Join(notes, "; ")))
	}
	if r.Known {
		line(true, "expected", t.Expected, "")
	}
	line(true, "once", t.Once, "")
	if r.Known || t.Lost > 0 {
		line(true, "lost", t.Lost, verify.Lost, "accepted by the broker, never received")
	}
	copies := fmt.Sprintf("copies too many, %d redelivered", t.Redelivered)
	if t.Resent > 0 {
		copies += fmt.Sprintf(", %d resent twice", t.Resent)
	}
	line(true, "duplicated", t.Duplicates, verify.Duplicated, copies)
	line(true, "out of order", t.Disordered, verify.Disordered, fmt.Sprintf("behind a later one, %d redelivered",
		t.DisorderedRedelivered))
	var illegible []string
	if t.Illegible > 0 {
		illegible = append(illegible, fmt.Sprintf("%d beyond recognition", t.Illegible))
	}
	line(true, "damaged", t.Damaged, verify.Damaged, illegible...)
	line(false, "foreign", t.Foreign, "", "of other runs or tools")
	line(false, "left", t.Left, "", "not received when the consumers ended")
	line(false, "early", t.Early, "", "sent before the subscription")
	line(false, "gaps", t.Gaps, "", "below the highest number received")
	line(false, "in doubt", t.UnconfirmedArrived+t.UnconfirmedMissing, "",
		fmt.Sprintf("sent without an answer: %d arrived, %d did not", t.UnconfirmedArrived, t.UnconfirmedMissing))
	line(false, "refused", t.RefusedArrived, verify.Refused, "by the broker, but received")
	line(false, "withheld", t.WithheldArrived, verify.Withheld, "rolled back, but received")
}
