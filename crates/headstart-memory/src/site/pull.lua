-- What changed since the asker last looked. Reads only: it works on a store that takes no more writes.
-- KEYS: site, paths, changes.
-- ARGV: the epoch that the asker knows, the last change that it has seen, how many it takes.
-- Answer: the store's clock in us, its epoch, the last change in this answer, then prefix and text of each.
local time = redis.call('TIME')
local epoch = redis.call('HGET', KEYS[1], 'epoch') or ''
local answer = {time[1] .. string.format('%06d', time[2]), epoch, '0'}
if epoch == '' then
	return answer
end
answer[3] = epoch == ARGV[1] and ARGV[2] or '0'
-- No further than what was counted: whatever else stands in the list is nobody's change.
local last = redis.call('HGET', KEYS[1], 'changes') or '0'
local found =
	redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. answer[3], last, 'WITHSCORES', 'LIMIT', '0', ARGV[3])
for i = 1, #found, 2 do
	local prefix, text = found[i], redis.call('HGET', KEYS[2], found[i]) or ''
	-- Ours are never that long.
	if #prefix > 64 or #text > 512 then
		prefix, text = 'too long', ''
	end
	answer[3] = found[i + 1]
	answer[#answer + 1] = prefix
	answer[#answer + 1] = text
end
return answer
