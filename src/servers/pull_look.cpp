#include "servers/pull_look.hpp"

#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "scripts/scripts.hpp"
#include "servers/answers.hpp"

namespace remote::servers {

std::vector<PathKind> look_at(ssh::Connection& connection, const std::vector<std::string>& paths,
                              const Cancel& cancel) {
  std::string script(scripts::text("pull_look.sh"));
  script += "pull_look";
  for (const std::string& path : paths) {
    script += " " + remote_path_word(path);
  }
  ssh::ExecRequest request;
  request.input = ssh::wrap_script(script);
  request.timeout = std::chrono::seconds(30);
  Answers answers([](std::string_view) {});
  answers.add(connection.exec(request, cancel).out);
  std::vector<PathKind> kinds;
  for (const std::string& word : answers.all("pull")) {
    kinds.push_back(word == "link" ? PathKind::link : word == "there" ? PathKind::there : PathKind::missing);
  }
  if (kinds.size() != paths.size()) {
    throw Error("cannot look at the files", "the server's answer is not understood");
  }
  return kinds;
}

}  // namespace remote::servers
