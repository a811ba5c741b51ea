package daemon

import (
	"os"
	"slices"
	"testing"
	"time"

	"handoffd/configs"
	"handoffd/daemon/control"
)

// BenchmarkPokeToStored is an append, a poke and the wait for its bytes to be
// stored (target T8).
func BenchmarkPokeToStored(b *testing.B) {
	d := newBench(b)
	d.settings = func(c *configs.Daemon) { c.Quiet, c.MinFresh, c.Log.Level = time.Hour, time.Hour, "warn" }
	d.say(d.session(1), "x")
	d.start()
	var took []time.Duration
	for b.Loop() {
		d.say(d.session(1), "one more turn")
		began := time.Now()
		if err := d.call(control.Poke, control.PokeRequest{Source: d.session(1), Wait: true}, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "p99-ms")
	if n := d.turns(d.session(1)); n != len(took)+1 {
		b.Errorf("%d turns stored of %d", n, len(took)+1)
	}
	if err := d.signal(os.Interrupt); err != nil {
		b.Error(err)
	}
}
