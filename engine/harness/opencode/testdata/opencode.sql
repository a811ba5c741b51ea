CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, time_updated integer NOT NULL);
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL DEFAULT '', directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE TABLE account (id text PRIMARY KEY, access_token text NOT NULL, refresh_token text NOT NULL);
CREATE TABLE credential (id text PRIMARY KEY, value text NOT NULL);
INSERT INTO account VALUES ('a', 'POISON-access', 'POISON-refresh');
INSERT INTO credential VALUES ('c', 'POISON-credential');
INSERT INTO project VALUES ('global', '/', 1);

-- A whole conversation, in a directory of no repository.
INSERT INTO session VALUES ('ses_a', 'global', NULL, 'x', '/home/u/site', 'A page', '1.18.0', NULL, 1781674674000, 1781674690000);
INSERT INTO message VALUES ('msg_a1', 'ses_a', 1781674674100, 1781674674100, '{"role":"user","time":{"created":1781674674100},"agent":"build","model":{"providerID":"p","modelID":"small-1"},"summary":{"diffs":[]}}');
INSERT INTO part VALUES ('prt_a1', 'msg_a1', 'ses_a', 1781674674100, 1781674674100, '{"type":"text","text":"Make a page"}');
INSERT INTO part VALUES ('prt_a2', 'msg_a1', 'ses_a', 1781674674101, 1781674674101, '{"type":"text","text":"Called the Read tool with ...","synthetic":true}');
INSERT INTO part VALUES ('prt_a3', 'msg_a1', 'ses_a', 1781674674102, 1781674674102, '{"type":"file","mime":"image/png","filename":"shot.png","url":"data:image/png;base64,AAAA"}');
INSERT INTO message VALUES ('msg_a2', 'ses_a', 1781674675000, 1781674680000, '{"role":"assistant","parentID":"msg_a1","modelID":"big-2","providerID":"p","path":{"cwd":"/home/u/site","root":"/"},"tokens":{"input":100,"output":20,"reasoning":5,"cache":{"read":7,"write":3}},"time":{"created":1781674675000,"completed":1781674680000},"finish":"tool-calls"}');
INSERT INTO part VALUES ('prt_a4', 'msg_a2', 'ses_a', 1781674675001, 1781674675001, '{"type":"step-start"}');
INSERT INTO part VALUES ('prt_a5', 'msg_a2', 'ses_a', 1781674675002, 1781674675009, '{"type":"reasoning","text":"A page it is.","time":{"start":1781674675002,"end":1781674675009}}');
INSERT INTO part VALUES ('prt_a6', 'msg_a2', 'ses_a', 1781674675010, 1781674675500, '{"type":"tool","tool":"write","callID":"c1","state":{"status":"completed","input":{"filePath":"/home/u/site/index.html","content":"<p>"},"output":"Wrote file","title":"index.html","time":{"start":1781674675100,"end":1781674675500}}}');
INSERT INTO part VALUES ('prt_a7', 'msg_a2', 'ses_a', 1781674675011, 1781674675900, '{"type":"tool","tool":"bash","callID":"c2","state":{"status":"completed","input":{"command":"nosuch --x"},"output":"nosuch: not found","metadata":{"exit":127},"time":{"start":1781674675600,"end":1781674675900}}}');
INSERT INTO part VALUES ('prt_a8', 'msg_a2', 'ses_a', 1781674675012, 1781674675950, '{"type":"tool","tool":"invalid","callID":"c3","state":{"status":"completed","input":{"tool":"wirte","error":"no such tool"},"output":"The arguments are invalid","time":{"start":1781674675901,"end":1781674675950}}}');
INSERT INTO part VALUES ('prt_a9', 'msg_a2', 'ses_a', 1781674675013, 1781674675960, '{"type":"tool","tool":"read","callID":"c4","state":{"status":"error","input":{"filePath":"/x"},"error":"File not found: /x","time":{"start":1781674675951,"end":1781674675960}}}');
INSERT INTO part VALUES ('prt_aa', 'msg_a2', 'ses_a', 1781674675014, 1781674679000, '{"type":"text","text":"Done, see index.html","time":{"start":1781674676000,"end":1781674679000}}');
INSERT INTO part VALUES ('prt_ab', 'msg_a2', 'ses_a', 1781674675015, 1781674680000, '{"type":"step-finish","tokens":{"input":100}}');
INSERT INTO part VALUES ('prt_ac', 'msg_a2', 'ses_a', 1781674675016, 1781674680000, 'half a rec');
INSERT INTO part VALUES ('prt_ad', 'msg_a2', 'ses_a', 1781674675017, 1781674680000, '{"type":"hologram","beams":3}');
INSERT INTO message VALUES ('msg_a3', 'ses_a', 1781674681000, 1781674681000, '{"role":"user","time":{"created":1781674681000}}');
INSERT INTO part VALUES ('prt_ae', 'msg_a3', 'ses_a', 1781674681000, 1781674681000, '{"type":"compaction","auto":true}');
INSERT INTO message VALUES ('msg_a4', 'ses_a', 1781674682000, 1781674683000, '{"role":"assistant","summary":true,"modelID":"big-2","time":{"created":1781674682000,"completed":1781674683000}}');
INSERT INTO part VALUES ('prt_af', 'msg_a4', 'ses_a', 1781674682000, 1781674683000, '{"type":"text","text":"So far: a page.","time":{"start":1781674682000,"end":1781674683000}}');
INSERT INTO message VALUES ('msg_a5', 'ses_a', 1781674684000, 1781674685000, '{"role":"assistant","modelID":"big-2","error":{"name":"ProviderAuthError","data":{"message":"no key"}},"time":{"created":1781674684000}}');

-- A subagent's.
INSERT INTO session VALUES ('ses_b', 'global', 'ses_a', 'y', '/home/u/site', 'Look around (@explore subagent)', '1.18.0', NULL, 1781674676000, 1781674677000);
INSERT INTO message VALUES ('msg_b1', 'ses_b', 1781674676000, 1781674676000, '{"role":"user"}');
INSERT INTO part VALUES ('prt_b1', 'msg_b1', 'ses_b', 1781674676000, 1781674676000, '{"type":"text","text":"Look around"}');

-- One that was reverted to before its second message.
INSERT INTO session VALUES ('ses_c', 'global', NULL, 'z', '/home/u/other', 'Reverted', '1.18.0', '{"messageID":"msg_c2","snapshot":"s"}', 1781674700000, 1781674710000);
INSERT INTO message VALUES ('msg_c1', 'ses_c', 1781674700000, 1781674700000, '{"role":"user"}');
INSERT INTO part VALUES ('prt_c1', 'msg_c1', 'ses_c', 1781674700000, 1781674700000, '{"type":"text","text":"First"}');
INSERT INTO message VALUES ('msg_c2', 'ses_c', 1781674702000, 1781674702000, '{"role":"user"}');
INSERT INTO part VALUES ('prt_c2', 'msg_c2', 'ses_c', 1781674702000, 1781674702000, '{"type":"text","text":"Taken back"}');

-- One whose answer is still being written.
INSERT INTO session VALUES ('ses_d', 'global', NULL, 'w', '/home/u/live', 'Live', '1.18.0', NULL, 1781674800000, 1781674800000);
INSERT INTO message VALUES ('msg_d1', 'ses_d', 1781674800000, 1781674800000, '{"role":"user"}');
INSERT INTO part VALUES ('prt_d1', 'msg_d1', 'ses_d', 1781674800000, 1781674800000, '{"type":"text","text":"Go on"}');
INSERT INTO message VALUES ('msg_d2', 'ses_d', 1781674801000, 1781674801000, '{"role":"assistant","modelID":"big-2","time":{"created":1781674801000}}');
INSERT INTO part VALUES ('prt_d2', 'msg_d2', 'ses_d', 1781674801001, 1781674801001, '{"type":"text","text":"First I run it.","time":{"start":1781674801001,"end":1781674801500}}');
INSERT INTO part VALUES ('prt_d3', 'msg_d2', 'ses_d', 1781674801002, 1781674801002, '{"type":"tool","tool":"bash","callID":"d1","state":{"status":"running","input":{"command":"make"},"time":{"start":1781674801600}}}');
INSERT INTO part VALUES ('prt_d4', 'msg_d2', 'ses_d', 1781674801003, 1781674801003, '{"type":"text","text":"Meanw","time":{"start":1781674801700}}');
