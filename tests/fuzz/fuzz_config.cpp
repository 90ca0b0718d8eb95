#include <cstddef>
#include <cstdint>
#include <string>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "config/config.hpp"
#include "promise.hpp"

// Any bytes are either a valid configuration or an Error that names the file. A configuration that loads
// keeps the promises that the rest of the program relies on.

namespace {

bool leaves_folder(const std::string& path) {
  return path.empty() || path.front() == '/' || ("/" + path + "/").find("/../") != std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const config::Config config = config::parse(text, "/p/demo");
    require(!config.name.empty() && config.name.find('/') == std::string::npos && config.name != "..",
            "the name is a folder name");
    for (const std::string& folder :
         {config.scripts_folder, config.logs_folder, config.jobs_folder, config.exclude_file}) {
      require(!leaves_folder(folder), "folders stay in the project");
    }
    for (const std::string& name : {config.remote_scripts_folder_name, config.remote_jobs_folder_name}) {
      require(!name.empty() && name.find('/') == std::string::npos && name != "." && name != "..",
              "names on the server are components");
    }
    require(config.warnings.size() <= 21, "warnings are bounded");
    for (const config::Server& server : config.servers) {
      require(config::valid_server_name(server.name) && server.line > 0, "server names are safe");
      require(!server.hostname.empty() && server.hostname.front() != '-', "hosts are no options");
      require(!server.port || (*server.port >= 1 && *server.port <= 65535), "ports are ports");
      require(!server.private_key || server.private_key->is_absolute(), "keys are absolute");
      require(!config.project_path_on(server).empty(), "every server has a path");
    }
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::usage, "errors are about usage");
    require(error.message().starts_with("/p/demo/.remote/configs.yaml"), "errors name the file");
    require(!first_invalid_utf8(error.message() + error.hint()), "errors are UTF-8");
  }
  return 0;
}
