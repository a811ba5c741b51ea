package daemon

import (
	"io"
	"log/slog"

	"handoffd/configs"
	"handoffd/daemon/logging"
	"handoffd/engine/fault"
)

// openLog makes the logger.
func (d *Daemon) openLog(settings configs.Daemon) error {
	level, err := logging.ParseLevel(settings.Log.Level)
	if err != nil {
		return fault.New(fault.Config, "%w", err)
	}
	d.level.Set(level)
	var w io.Writer = d.conf.Stderr
	color := d.conf.Color
	if settings.Log.File != "" {
		f, err := logging.OpenRotated(settings.Log.File, settings.Retention.LogBytes)
		if err != nil {
			return fault.New(fault.Config, "%w", err).WithHint("log.file in %s", settings.File)
		}
		d.logFile, w, color = f, f, false
	}
	d.log = slog.New(logging.NewHandler(w, logging.Options{Level: d.level, Format: settings.Log.Format, Color: color}))
	return nil
}

func (d *Daemon) closeLog() {
	if d.logFile != nil {
		_ = d.logFile.Close()
	}
}
