#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/hashing.hpp"
#include "promise.hpp"
#include "ssh/agent.hpp"
#include "ssh/host_keys.hpp"

// Any bytes may be a known_hosts file, or the list of keys from an agent.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"gpu-1", "[127.0.0.1]:2222"}) {
    const auto keys = ssh::find_known_keys(text, name, "/nowhere/known_hosts");
    for (const ssh::KnownKey& key : keys) {
      require(key.line > 0, "a key says where it stands");
      require(key.type.find_first_of(" \t\n") == std::string::npos, "a type is one word");
    }
    ssh::preferred_algorithms(keys);
    const auto state = ssh::judge_key(keys, "ssh-ed25519", "AAAA");
    require(!keys.empty() || state == ssh::KeyState::fresh, "nobody is known from nothing");
  }
  const std::string filtered = ssh::filter_identities(text, {"key"});
  require(filtered.size() <= size || filtered.size() == 5, "a filter adds nothing");
  require(ssh::filter_identities(filtered, {"key"}) == filtered, "a filtered list is a list");
  base64_decode(std::string(text));
  return 0;
}
