#pragma once

#include <string>
#include <vector>

namespace remote::cli {

// The equivalent of another tool's command line, such as "use `remote job-tail 5 -f`" for {"logs", "5",
// "-f"}; "" if its first word is unknown. `before`: the global options before that word. `servers`: those of
// configs.yaml.
std::string hint_for_other_tool(const std::vector<std::string>& typed,
                                const std::vector<std::string>& servers,
                                const std::vector<std::string>& before = {});

}  // namespace remote::cli
