#include <cstddef>
#include <cstdint>
#include <string>

#include <remote/error.hpp>
#include <remote/launch_texts.hpp>

#include "config/validate.hpp"
#include "project/import/import.hpp"
#include "promise.hpp"

// Any bytes are either a list of servers with valid values, or an Error (usage). The same is true for
// --include.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const project::ServerList list = project::read_server_list(text, "list", "/lists", "/work/proj");
    require(!list.servers.empty(), "a list has servers");
    for (const config::NewServer& server : list.servers) {
      require(!config::server_name_problem(server.name), "a server's name is good");
      require(!config::host_problem(server.hostname), "a host is good");
      require(!server.username || !config::user_problem(*server.username), "a user is good");
    }
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::usage, "a wrong list is wrong usage");
  }
  try {
    for (const LaunchHost& host : parse_host_filter(text, "--include")) {
      require(!host.name.empty(), "a host has a name");
    }
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::usage, "a wrong filter is wrong usage");
  }
  return 0;
}
