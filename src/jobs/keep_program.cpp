#include "jobs/keep_program.hpp"

#include <chrono>
#include <string>
#include <utility>

#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "jobs/from_wire.hpp"
#include "server/agent_command.hpp"
#include "server/archive.hpp"
#include "servers/agent.hpp"

namespace remote::jobs {

namespace {

bool is_missing(const AnyAgent& agent, const RemoteFolder& folder, std::string archive) {
  try {
    return servers::take_reply<wire::KeepProgramReply>(
               agent.ask({.what = "copy of the server's program",
                          .request = wire::KeepProgramRequest{to_place(folder), server_program()},
                          .data = std::move(archive),
                          .timeout = std::chrono::minutes(2)}))
        .is_missing;
  } catch (const servers::Refused&) {
    throw;
  } catch (const Error& error) {
    throw servers::Refused(error.what());  // the server still has not started anything
  }
}

}  // namespace

wire::ServerProgram server_program() {
  const std::string digest =
      Sha256().add_field(server::archive_digest()).add_field(server::agent_version()).hex();
  return {.digest = digest, .size = server::archive_content_size()};
}

void keep_program(const AnyAgent& agent, const RemoteFolder& folder) {
  if (is_missing(agent, folder, "")) {
    send_program(agent, folder);
  }
}

void send_program(const AnyAgent& agent, const RemoteFolder& folder) {
  if (is_missing(agent, folder, std::string(server::archive()))) {
    throw servers::Refused("the server's program was copied into " + folder.jobs_folder +
                           "/.bin, but is not there");
  }
}

}  // namespace remote::jobs
