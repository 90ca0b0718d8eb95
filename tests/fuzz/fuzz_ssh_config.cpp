#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <remote/error.hpp>

#include "promise.hpp"
#include "servers/authorize.hpp"
#include "ssh/ssh_config.hpp"

// Any bytes are an ssh_config(5) file, possibly with warnings; and a public key, or an Error.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.find("nclude") == std::string::npos && text.find("NCLUDE") == std::string::npos) {
    ssh::ConfigQuery query;
    query.host = "gpu-1";
    query.local_user = "ann";
    query.home = "/nowhere";
    query.exec = [](const std::string& command) { return command.size() % 2 == 0; };
    const std::vector<ssh::ConfigSource> sources{{"/nowhere/.ssh/config", text, "/nowhere/.ssh"}};
    const ssh::HostOptions options = ssh::read_ssh_config(sources, query);
    for (const char* key : {"hostname", "user", "port", "proxycommand", "identityagent"}) {
      if (const ssh::ConfigValue* value = options.find(key)) {
        require(value->text.find('\n') == std::string::npos, "a value is of one line");
        require(value->origin.find(".ssh/config:") != std::string::npos, "a value says where it stands");
      }
    }
    for (const ssh::ConfigValue& file : options.all("identityfile")) {
      ssh::expand_path(file.text, {{'h', "gpu-1"}, {'r', "ann"}}, "/nowhere");
    }
  }
  std::vector<std::string> words;
  if (ssh::split_arguments(text, words)) {
    const int match = ssh::match_pattern_list("gpu-1.example.org", words);
    require(match >= -1 && match <= 1, "a match is one of three");
  }
  try {
    const servers::PublicKey key = servers::parse_public_key(text, "key.pub");
    require(key.line().find_first_of("\r\n") == std::string::npos, "a key is one line");
    require(key.type.find_first_of(" '\"") == std::string::npos, "a key's type is one plain word");
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::usage, "a wrong key is wrong usage");
  }
  return 0;
}
