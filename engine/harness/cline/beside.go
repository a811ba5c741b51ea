package cline

import (
	"path"
	"path/filepath"

	"handoffd/engine/harness"
	"handoffd/engine/harness/plain"
)

// item is what a harness's list of tasks says of one.
type item struct {
	id, task, cwd, model, parent string
}

// beside takes what the files near the messages say, for what the messages do
// not: history_item.json of Roo Code, task_metadata.json of Cline, and the list
// of all tasks two directories above.
func (d *document) beside() {
	if d.env.Beside == nil || !isTask(d.env.Name()) {
		return
	}
	own := readItems(d.env.Near("history_item.json"))
	id := path.Base(path.Dir(filepath.ToSlash(d.env.Path)))
	if len(own) != 1 {
		own = nil
		for _, it := range readItems(d.env.Near("../../state/taskHistory.json")) {
			if it.id == id {
				own = []item{it}
			}
		}
	}
	var it item
	if len(own) == 1 && (own[0].id == id || own[0].id == "") {
		it = own[0]
	}
	m := d.meta
	if m.CWD == "" {
		m.CWD = plain.Text(it.cwd)
	}
	if m.Model == "" {
		m.Model = plain.Text(plain.FirstOf(readModelUse(d.env.Near("task_metadata.json")), it.model))
	}
	d.begin(it.task)
	if it.parent != "" && it.parent != id {
		m.Kind, m.Parent = "subagent", plain.Text(it.parent)
	}
}

// readItems reads one task, or a list of them.
func readItems(raw []byte) (list []item) {
	if len(raw) == 0 {
		return nil
	}
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		list = nil
		if v.Kind() == '[' {
			v.Items(func() { list = append(list, readItem(v)) })
			return
		}
		list = append(list, readItem(v))
	})
	if err != nil {
		return nil // half written
	}
	return list
}

func readItem(v *harness.Value) (it item) {
	var started, tree string
	v.Fields(func(name string) {
		switch name {
		case "id":
			it.id = v.Text()
		case "task":
			it.task = v.Text()
		case "workspace":
			it.cwd = v.Text()
		case "cwdOnTaskInitialization":
			started = v.Text()
		case "shadowGitConfigWorkTree":
			tree = v.Text()
		case "modelId":
			it.model = v.Text()
		case "parentTaskId":
			it.parent = v.Text()
		}
	})
	it.cwd = plain.FirstOf(it.cwd, started, tree)
	return it
}

// readModelUse is the model that task_metadata.json names last.
func readModelUse(raw []byte) (model string) {
	if len(raw) == 0 {
		return ""
	}
	var v harness.Value
	_, err := v.Walk(raw, func(v *harness.Value) {
		model = ""
		v.Fields(func(name string) {
			if name != "model_usage" {
				return
			}
			v.Items(func() {
				v.Fields(func(name string) {
					if name == "model_id" {
						if s := v.Text(); s != "" {
							model = s
						}
					}
				})
			})
		})
	})
	if err != nil {
		return ""
	}
	return model
}
