-- Opens a file, reads what is found and hovered, applies the fix as a person would, and writes the file. What is seen
-- is printed as one JSON object.
local seen = {}
local function finish(problem)
  seen.problem = problem
  io.stdout:write(vim.json.encode(seen) .. "\n")
  vim.cmd(problem and "cquit 1" or "qall!")
end
local function eventually(what, look)
  if not vim.wait(20000, look, 20) then finish(what) end
end

vim.cmd("filetype on")
vim.cmd("luafile " .. vim.env.CONFIGURATION)
vim.cmd("edit " .. vim.env.FILE)
local buffer = vim.api.nvim_get_current_buf()
local client = vim.lsp.get_client_by_id(nnx_client)
eventually("the server did not start", function() return client.initialized end)
eventually("nothing was found", function() return #vim.diagnostic.get(buffer) > 0 end)
seen.found = vim.tbl_map(function(item)
  return { code = item.code, line = item.lnum, message = item.message, severity = item.severity, source = item.source }
end, vim.diagnostic.get(buffer))

local at = tonumber(vim.env.LINE)
local place = { textDocument = vim.lsp.util.make_text_document_params(buffer), position = { line = at, character = 14 } }
local answer = client.request_sync("textDocument/hover", place, 10000, buffer)
seen.hover = answer and answer.result and answer.result.contents.value or ""

vim.ui.select = function(items, options, choose)
  seen.actions = vim.tbl_map(options.format_item, items)
  choose(items[1], 1)
end
vim.api.nvim_win_set_cursor(0, { at + 1, 24 })
vim.lsp.buf.code_action()
local function line() return vim.api.nvim_buf_get_lines(buffer, at, at + 1, false)[1] end
eventually("no fix was applied: " .. line(), function() return line():match("nnx%.List") ~= nil end)
eventually("the finding stays", function() return #vim.diagnostic.get(buffer) == 0 end)
vim.cmd("silent write")
client.stop()
eventually("the server did not stop", function() return client.is_stopped() end)
finish(nil)
