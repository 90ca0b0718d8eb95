#pragma once

#include <string>

#include "server/program.hpp"
#include "ssh/program_channel.hpp"

namespace remote::test {

// A request to the server's program as another command runs it, which stands before it: "exec setpriv …". The
// version that is kept there may be another user's, so it is sent, too.
inline ssh::ExecRequest program_as(const std::string& before, const std::string& request) {
  ssh::ExecRequest exec;
  exec.command = before + " sh -c '" + server::program_text() + "'";
  exec.input = request + server::program_installation() + request;
  return exec;
}
// An output without the program's own first line.
inline std::string without_needed(std::string_view out) {
  std::string rest;
  ssh::ProgramOffer().take(
      out, [] {}, [&](std::string_view piece) { rest += piece; });
  return rest;
}
inline std::string program_output(ssh::Connection& connection, const ssh::ExecRequest& request) {
  return without_needed(connection.exec(request).out);
}

}  // namespace remote::test
