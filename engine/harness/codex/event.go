package codex

import (
	"fmt"
	"strings"

	"handoffd/engine/harness/plain"
	"handoffd/engine/turn"
)

// silent are the events that say nothing a reader of the session needs.
var silent = map[string]bool{
	"entered_review_mode": true, "exited_review_mode": true, "thread_goal_updated": true,
	"sub_agent_activity": true, "guardian_assessment": true, "view_image_tool_call": true,
	"collab_agent_spawn_end": true, "collab_agent_interaction_end": true,
	"collab_waiting_end": true, "collab_close_end": true, "collab_resume_end": true,
	"collab_agent_spawn_begin": true, "collab_agent_interaction_begin": true,
	"collab_waiting_begin": true, "collab_close_begin": true, "collab_resume_begin": true,
	"dynamic_tool_call_request": true, "dynamic_tool_call_response": true,
	"guardian_warning": true, "safety_buffering": true, "model_reroute": true,
	"model_verification": true, "turn_moderation_metadata": true,
	"agent_reasoning_section_break": true, "raw_response_item": true,
	"session_configured": true, "thread_settings_applied": true,
	"mcp_tool_call_begin": true, "exec_command_begin": true, "terminal_interaction": true,
	"exec_command_output_delta": true, "exec_approval_request": true,
	"request_permissions": true, "request_user_input": true, "elicitation_request": true,
	"apply_patch_approval_request": true, "patch_apply_begin": true, "patch_apply_updated": true,
	"turn_diff": true, "mcp_startup_update": true, "mcp_startup_complete": true,
	"web_search_begin": true, "plan_update": true, "shutdown_complete": true,
	"deprecation_notice": true, "item_started": true, "item_updated": true,
	"hook_started": true, "hook_completed": true, "agent_message_content_delta": true,
	"agent_message_delta": true, "agent_reasoning_delta": true, "plan_delta": true,
	"reasoning_content_delta": true, "reasoning_raw_content_delta": true,
	"image_generation_begin": true, "background_event": true, "stream_error": true,
	"realtime_conversation_started": true, "realtime_conversation_sdp": true,
	"realtime_conversation_realtime": true, "realtime_conversation_closed": true,
	"undo_started": true, "undo_completed": true, "skills_update_available": true,
	"list_custom_prompts_response": true, "thread_name_updated": true,
}

// event takes an event_msg.
func (d *decoder) event(r *record) (unknown string) {
	f := &r.fields
	switch f.kind {
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content":
		d.spoken(f)
	case "item_completed":
		d.named(f.turnID)
		if f.item != nil {
			return d.completed(f.item)
		}
	case "task_started", "turn_started":
		if f.window > 0 {
			d.meta.Tokens.Window = f.window
		}
		if f.turnID == "" {
			d.Twins.start()
		}
		d.named(f.turnID)
	case "task_complete", "turn_complete":
		d.named(f.turnID)
		d.Twins.end()
		if f.fault != "" {
			// Such a turn often has no answer at all (B24).
			d.Twins.turns(d.other("[turn failed: " + f.fault + "]"))
		}
	case "turn_aborted":
		d.named(f.turnID)
		d.Twins.end()
		reason := f.reason
		if reason == "" {
			reason = "unknown"
		}
		d.Twins.turns(d.other("[turn aborted: " + reason + "]"))
	case "thread_rolled_back":
		d.Twins.end()
		d.Twins.turns(d.other(fmt.Sprintf("[thread rolled back by %d]", f.numTurns)))
	case "context_compacted":
		d.Twins.event(compaction, 0, fromEvent, d.summary(""))
	case "token_count":
		d.tokens(r)
	case "error", "warning":
		if strings.TrimSpace(f.message) != "" {
			d.Twins.turns(d.other("[" + f.kind + ": " + f.message + "]"))
		}
	case "exec_command_end", "patch_apply_end", "mcp_tool_call_end", "image_generation_end":
		d.ended(f, fromEvent)
	case "web_search_end":
		d.Twins.event(search, plain.Letters(f.query), fromEvent, d.searchTurn(f))
	default:
		if f.threadName != "" {
			d.meta.Title = plain.Text(f.threadName)
		}
		if !silent[f.kind] {
			return plain.Clip(plain.Text("event_msg/"+f.kind), 64)
		}
	}
	return ""
}

// spoken takes the events that repeat a message or reasoning.
func (d *decoder) spoken(f *fields) {
	text := f.message
	if f.kind != "user_message" && text == "" {
		text = f.text
	}
	text = plain.Text(text)
	switch f.kind {
	case "user_message":
		d.saidByUser(text, f.images, fromEvent)
	case "agent_message":
		d.said(agent, turn.Agent, text, fromEvent)
	default:
		d.said(reasoning, turn.Thought, text, fromEvent)
	}
}

// saidByUser takes a prompt that may have an item.
func (d *decoder) saidByUser(text string, images int, from origin) {
	key := plain.Letters(text)
	shown := text
	class := turn.User
	if text != "" {
		class, shown = classify("user", text)
	}
	for range min(images, 64) {
		if shown != "" {
			shown += "\n"
		}
		shown += plain.Image
	}
	if strings.TrimSpace(shown) == "" || d.Twins.repeated(user, key) {
		return
	}
	if class == turn.Other {
		// Its item is decided at once, so the event is too much anyway.
		return
	}
	d.Twins.event(user, key, from, turn.Turn{TS: d.now, Mark: d.mark, Class: class, Text: shown})
}

// said takes what the agent says or thinks that may have an item.
func (d *decoder) said(k kind, class turn.Class, text string, from origin) {
	key := plain.Letters(text)
	if strings.TrimSpace(text) == "" || d.Twins.repeated(k, key) {
		return
	}
	d.Twins.event(k, key, from, turn.Turn{TS: d.now, Mark: d.mark, Class: class, Text: text})
}

// completed takes the item of an item_completed (0.149 on, B12).
func (d *decoder) completed(f *fields) (unknown string) {
	switch f.kind {
	case "UserMessage":
		var texts []string
		images := 0
		for _, p := range f.parts {
			if p.image {
				images++
			} else {
				texts = append(texts, p.text)
			}
		}
		d.saidByUser(strings.Join(texts, "\n"), images, fromItem)
	case "AgentMessage":
		text, _ := f.messageText()
		d.said(agent, turn.Agent, text, fromItem)
	case "Plan":
		d.said(agent, turn.Agent, plain.Text(f.text), fromItem)
	case "Reasoning":
		d.said(reasoning, turn.Thought, strings.Join(f.summary, "\n\n"), fromItem)
	case "CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "ImageGeneration", "CollabAgentToolCall":
		f.callID = f.id
		d.ended(f, fromItem)
	case "WebSearch":
		d.Twins.event(search, plain.Letters(f.query), fromItem, d.searchTurn(f))
	case "ContextCompaction":
		d.Twins.event(compaction, 0, fromItem, d.summary(""))
	case "HookPrompt", "SubAgentActivity", "ImageView", "Sleep":
	default:
		return plain.Clip(plain.Text("item_completed/"+f.kind), 64)
	}
	return ""
}

// ended takes the end of a call. The events stand between the call and its
// output in every rollout seen, so that the output can carry what they say.
func (d *decoder) ended(f *fields, from origin) {
	if f.callID == "" {
		return
	}
	failed := f.failed || f.status == "failed" || f.status == "declined"
	if c := d.known(f.callID); c != nil {
		if c.Exit == nil {
			c.Exit = f.exit
		}
		c.Failed = c.Failed || failed
		return
	}
	d.Twins.event(call, plain.Hash(f.callID), from, d.eventTurns(f, failed)...)
}

// eventTurns are the call and the result of a tool that only an event tells.
func (d *decoder) eventTurns(f *fields, failed bool) []turn.Turn {
	name, args := f.tool, f.args
	switch f.kind {
	case "exec_command_end", "CommandExecution":
		name, args = "exec_command", f.command
	case "patch_apply_end", "FileChange":
		name, args = "apply_patch", strings.Join(f.edits, " ")
	case "image_generation_end", "ImageGeneration":
		f.id = f.callID
		return d.pictureTurns(f)
	case "CollabAgentToolCall":
		args = f.prompt
	}
	if f.server != "" {
		name = f.server + "." + name
	}
	if name == "" {
		name = "unknown"
	}
	called := callTurn(d.now, d.mark, name, f.callID, args)
	called.Tool.Command = plain.Text(f.command)
	called.Tool.Edits = f.edits
	return []turn.Turn{called, resultTurn(d.now, d.mark, name, f.callID, f.stdout, f.exit, failed)}
}
