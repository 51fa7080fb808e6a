-- Takes what is newer than what is here.
-- KEYS: site, paths, changes.
-- ARGV: the epoch that the teller knows, another should one begin, the last change that it has seen, its name; how many
-- paths are kept, their lifetime in s, the slack of clocks in us; then for each path: prefix, age in us, "1" where it was
-- forgotten, the rest of its text.
-- Answer: the epoch; then the places, from 1, of the paths that another has changed since the teller looked: they are as
-- they were, for the teller to merge.
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local seen, teller = tonumber(ARGV[3]), ARGV[4]
local most, lifetime_s, slack_us = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local first = 8

-- When a text was learnt; nothing where it cannot be that.
local function learnt_us(text)
	local at = text and tonumber(string.match(text, '^%d+'))
	return at and at <= now_us + 1000000 and at
end

local function drop(prefix)
	redis.call('HDEL', KEYS[2], prefix)
	redis.call('ZREM', KEYS[3], prefix)
end

-- One key may have been evicted, and the other not: then nothing is known, and all servers tell again.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch or redis.call('HLEN', KEYS[2]) ~= redis.call('ZCARD', KEYS[3]) then
	redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
	epoch = ARGV[2]
	redis.call('HSET', KEYS[1], 'epoch', epoch)
elseif epoch ~= ARGV[1] then
	return {epoch}
end

-- The least recently changed first, a few more than come: so that it ends.
local coming = (#ARGV - first + 1) / 4
for _, prefix in ipairs(redis.call('ZRANGE', KEYS[3], 0, 2 * coming + 15)) do
	local learnt = learnt_us(redis.call('HGET', KEYS[2], prefix))
	if not learnt or now_us - learnt > lifetime_s * 1000000 then
		drop(prefix)
	end
end

local answer = {epoch}
for i = first, #ARGV, 4 do
	local prefix, learnt = ARGV[i], now_us - tonumber(ARGV[i + 1])
	local text = redis.call('HGET', KEYS[2], prefix)
	local known = learnt_us(text)
	local unseen = known and tonumber(redis.call('ZSCORE', KEYS[3], prefix) or 0) > seen
	-- A tie goes to the failure.
	local newer = ARGV[i + 2] == '1' and -slack_us or slack_us
	if unseen and string.match(text, '^%d+ (%S+)') ~= teller then
		answer[#answer + 1] = tostring((i - first) / 4 + 1)
	elseif not known or learnt > known + newer then
		local change = redis.call('HINCRBY', KEYS[1], 'changes', 1)
		redis.call('HSET', KEYS[2], prefix, string.format('%.0f', learnt) .. ' ' .. ARGV[i + 3])
		redis.call('ZADD', KEYS[3], change, prefix)
	end
end

local surplus = redis.call('ZCARD', KEYS[3]) - most
if surplus > 0 then
	for _, prefix in ipairs(redis.call('ZRANGE', KEYS[3], 0, math.min(surplus, 2 * coming + 16) - 1)) do
		drop(prefix)
	end
end
for i = 1, 3 do
	redis.call('EXPIRE', KEYS[i], lifetime_s + 60)
end
return answer
