CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
INSERT INTO schema_version VALUES (5);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, extension_data TEXT DEFAULT '{}', input_tokens INTEGER, accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER, model_config_json TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT '2026-06-17 05:37:54', tokens INTEGER, metadata_json TEXT);
CREATE INDEX idx_messages_session ON messages(session_id);
CREATE TABLE provider_secrets (name TEXT, value TEXT);
INSERT INTO provider_secrets VALUES ('key', 'POISON');
INSERT INTO sessions VALUES ('20260617_1', '', 'Fix the build', 'user', '/home/u/app', '2026-06-17 05:37:50', '2026-06-17 05:40:00', '{"token":"POISON"}', 900, 2000, 300, '{"model_name":"big-2","context_limit":200000}');
INSERT INTO messages(session_id, role, content_json, created_timestamp, metadata_json) VALUES
 ('20260617_1', 'user', '[{"type":"text","text":"The build fails"}]', 1781674674, '{"userVisible":true,"agentVisible":true}'),
 ('20260617_1', 'assistant', '[{"type":"thinking","thinking":"Run it first.","signature":"s"},{"type":"text","text":"I run it."},{"type":"toolRequest","id":"t1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"make all"}}}}]', 1781674675, NULL),
 ('20260617_1', 'user', '[{"type":"toolResponse","id":"t1","toolResult":{"status":"success","value":[{"type":"text","text":"undefined: x"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}}]', 1781674676, NULL),
 ('20260617_1', 'assistant', '[{"type":"toolRequest","id":"t2","toolCall":{"status":"success","value":{"name":"developer__text_editor","arguments":{"command":"str_replace","path":"/home/u/app/x.go","old_str":"a"}}}},{"type":"toolRequest","id":"t3","toolCall":{"status":"error","error":"no such tool"}}]', 1781674676, NULL),
 ('20260617_1', 'user', '[{"type":"toolResponse","id":"t2","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"edited"}],"isError":false}}},{"type":"toolResponse","id":"t3","toolResult":{"status":"error","error":"-32602: not found"}}]', 1781674677, NULL),
 ('20260617_1', 'user', '[{"type":"text","text":"continue"}]', 1781674678, NULL),
 ('20260617_1', 'user', '[{"type":"text","text":"continue"}]', 1781674678, NULL),
 ('20260617_1', 'assistant', '[{"type":"conversationCompacted","msg":"Conversation compacted"},{"type":"systemNotification","notificationType":"inlineMessage","msg":"Compaction complete"},{"type":"telepathy"}]', 1781674679, NULL),
 ('20260617_1', 'user', '[{"type":"text","text":"The build failed because of x."}]', 1781674680, '{"userVisible":false,"agentVisible":true}'),
 ('20260617_1', 'assistant', 'not json', 1781674681, NULL);
INSERT INTO sessions(id, working_dir, session_type, created_at, updated_at) VALUES ('20260617_2', '/home/u/app', 'sub_agent', '2026-06-17 05:38:09', '2026-06-17 05:38:10');
INSERT INTO messages(session_id, role, content_json, created_timestamp) VALUES ('20260617_2', 'user', '[{"type":"text","text":"Only look"}]', 1781674690);
