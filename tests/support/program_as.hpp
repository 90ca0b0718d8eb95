#pragma once

#include <string>

#include "server/program.hpp"
#include "ssh/connection.hpp"

namespace remote::test {

// A request to the server's program as another command runs it, which stands before it: "exec setpriv …". The
// version that is kept there may be another user's, so it is sent, too.
inline ssh::ExecRequest program_as(const std::string& before, const std::string& request) {
  ssh::ExecRequest exec;
  exec.command = before + " sh -c '" + server::program_text() + "'";
  exec.input = request + server::program_installation() + request;
  return exec;
}
// Its output without the line that asks for the program.
inline std::string program_output(ssh::Connection& connection, const ssh::ExecRequest& request) {
  std::string out = connection.exec(request).out;
  const std::string needed = std::string(server::program_needed) + "\n";
  if (const std::size_t at = out.find(needed); at != std::string::npos) {
    out.erase(at, needed.size());
  }
  return out;
}

}  // namespace remote::test
