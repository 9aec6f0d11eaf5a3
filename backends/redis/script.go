package redis

import goredis "github.com/redis/go-redis/v9"

// prelude refuses, in the step that writes, a server that is no primary and, unless
// ARGV[1] is "lossy", one with replicas. It must agree with checkReplication.
const prelude = `
local replication = redis.call('INFO', 'replication')
local function has(line) return string.find(replication, '\n' .. line .. '\r', 1, true) end
if not has('role:master') then return redis.error_reply('READONLY it is not the primary') end
if ARGV[1] ~= 'lossy' and not (has('connected_slaves:0') and has('repl_backlog_active:0') and has('second_repl_offset:-1')) then
	return redis.error_reply('ELECTORREPLICAS it has, or had, replicas')
end
`

// swap compares and swaps the records of KEYS. ARGV[2] is the channel; three follow for
// each key: the content before, empty for none, the content after, and the name for the channel,
// empty for a renewal. The news goes first, so that nothing is written where it is
// forbidden; it arrives when the script has ended.
var swap = goredis.NewScript(prelude + `
local done = {}
for i, key in ipairs(KEYS) do
	local at = 3 * i
	local now = redis.pcall('GET', key)
	if type(now) == 'table' then
		done[i] = now
		if string.sub(now.err, 1, 9) == 'WRONGTYPE' then done[i] = 0 end
	elseif now ~= (ARGV[at] ~= '' and ARGV[at]) then -- no key is false, a key without content is not
		done[i] = 0
	else
		local failed
		if ARGV[at + 2] ~= '' then
			local news = redis.pcall('PUBLISH', ARGV[2], ARGV[at + 2])
			if type(news) == 'table' and news.err then failed = news end
		end
		if not failed then
			local set = redis.pcall('SET', key, ARGV[at + 1])
			if set.err then failed = set end
		end
		done[i] = failed or 1
	end
end
return done
`)

// commit runs commands, each as its number of words and its words, after ARGV[2], if the record in
// KEYS[1] begins with ARGV[2]. It returns 0 if it does not, or the answers, of which the
// last may be an error.
var commit = goredis.NewScript(prelude + `
if string.sub(redis.call('GET', KEYS[1]) or '', 1, #ARGV[2]) ~= ARGV[2] then return 0 end
local answers, at = {}, 3
while at <= #ARGV do
	local n = tonumber(ARGV[at])
	local answer = redis.pcall(unpack(ARGV, at + 1, at + n))
	if answer == nil then answer = false end
	answers[#answers + 1] = answer
	if type(answer) == 'table' and answer.err then break end
	at = at + n + 1
end
return answers
`)
