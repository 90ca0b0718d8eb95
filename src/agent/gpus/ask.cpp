#include "agent/gpus/ask.hpp"

#include <utility>

#include "agent/host/run.hpp"

namespace remote::agent {

ToolOutput ask_tool(const Host& host, std::chrono::milliseconds limit, const std::vector<std::string>& argv) {
  const RunResult result = run(host, {.argv = argv, .limit = limit, .with_stderr = true});
  return to_output(result.out, result.code);
}

Background<ToolOutput> start_asking(const Host& host, std::chrono::milliseconds limit,
                                    std::vector<std::string> argv) {
  return Background<ToolOutput>(
      [&host, limit, argv = std::move(argv)] { return ask_tool(host, limit, argv); });
}

}  // namespace remote::agent
