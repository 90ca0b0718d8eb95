#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// OpenSSH's client configuration, ssh_config(5): which value holds for a host, and on which line it stands.
// libssh has a reader too, but it knows neither Include in Match nor where a value came from.

namespace remote::ssh {

// One value and the line it stands on: "~/.ssh/config:12".
struct ConfigValue {
  std::string text;
  std::string origin;
};

// A configuration file's content.
struct ConfigSource {
  std::filesystem::path path;
  std::string text;
  std::filesystem::path include_base;  // relative Include patterns start here
};

// What a configuration is read for.
struct ConfigQuery {
  std::string host;            // as the user wrote it: what Host patterns match
  std::string user;            // given on the command line (here: in configs.yaml); may be empty
  std::string local_user;      // who runs this program
  std::filesystem::path home;  // for "~" and for showing origins
  // Runs the command of a `Match exec`; true when it exited with 0. Absent: such a Match never holds.
  std::function<bool(const std::string& command)> exec;
};

// What holds for one host. Keys are in lower case.
class HostOptions {
 public:
  // The first value found; nullptr when there is none.
  const ConfigValue* find(std::string_view key) const;
  // All values of a key that may be given several times (IdentityFile, CertificateFile).
  const std::vector<ConfigValue>& all(std::string_view key) const;
  // Lines that make no sense, for a warning.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend class ConfigReader;
  std::map<std::string, std::vector<ConfigValue>, std::less<>> values_;
  std::vector<std::string> warnings_;
};

// Reads the sources in order; the first value of a key wins. Include reads further files; Match final leads
// to a second reading, as in OpenSSH.
HostOptions read_ssh_config(const std::vector<ConfigSource>& sources, const ConfigQuery& query);

// ~/.ssh/config and /etc/ssh/ssh_config, those that exist.
std::vector<ConfigSource> ssh_config_sources(const std::filesystem::path& user_config);

// Values for "%h", "%p", …; "%%" is always "%".
using Tokens = std::map<char, std::string>;
// Replaces the tokens of ssh_config(5). A token that has no value stays as it is.
std::string expand_tokens(std::string_view text, const Tokens& tokens);
// Tokens, ${VARIABLES}, and "~" at the beginning.
std::filesystem::path expand_path(std::string_view text, const Tokens& tokens,
                                  const std::filesystem::path& home);

// The words of a line as ssh_config(5) quotes them; a "#" outside of quotes ends it. False: a quote is open.
bool split_arguments(std::string_view text, std::vector<std::string>& words);
// A comma-separated (or blank-separated) pattern list with negation: 1 matches, -1 a "!pattern" matched,
// 0 none did.
int match_pattern_list(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace remote::ssh
