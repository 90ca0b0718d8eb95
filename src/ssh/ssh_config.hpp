#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// OpenSSH's client configuration, ssh_config(5): the values for a host, and the lines they come from. libssh
// has a parser too, but it does not support Include in Match, and does not report where a value came from.

namespace remote::ssh {

// A value and its line: "~/.ssh/config:12".
struct ConfigValue {
  std::string text;
  std::string origin;
};

// The content of a configuration file.
struct ConfigSource {
  std::filesystem::path path;
  std::string text;
  std::filesystem::path include_base;  // relative Include patterns are relative to this
};

// The parameters for reading a configuration.
struct ConfigQuery {
  std::string host;            // as the user wrote it; Host patterns are matched against it
  std::string user;            // from the command line (here: from configs.yaml); may be empty
  std::string local_user;      // the user who runs this program
  std::filesystem::path home;  // to expand "~" and to display origins
  // Runs the command of a `Match exec`; returns true if it exits with 0. If empty, such a Match never
  // applies.
  std::function<bool(const std::string& command)> exec;
};

// The values for one host. Keys are in lower case.
class HostOptions {
 public:
  // The first value of the key; nullptr if there is none.
  const ConfigValue* find(std::string_view key) const;
  // All values of a key that may occur several times (IdentityFile, CertificateFile).
  const std::vector<ConfigValue>& all(std::string_view key) const;
  // Warnings about invalid lines.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend class ConfigReader;
  std::map<std::string, std::vector<ConfigValue>, std::less<>> values_;
  std::vector<std::string> warnings_;
};

// Reads the sources in order; the first value of a key wins. Follows Include, and reads the files a second
// time for Match final, like OpenSSH.
HostOptions read_ssh_config(const std::vector<ConfigSource>& sources, const ConfigQuery& query);

// Those of ~/.ssh/config and /etc/ssh/ssh_config that exist.
std::vector<ConfigSource> ssh_config_sources(const std::filesystem::path& user_config);

// Values for "%h", "%p", …; "%%" is always replaced with "%".
using Tokens = std::map<char, std::string>;
// Replaces the tokens of ssh_config(5). A token without a value is kept.
std::string expand_tokens(std::string_view text, const Tokens& tokens);
// Expands tokens, ${VARIABLES}, and "~" at the beginning.
std::filesystem::path expand_path(std::string_view text, const Tokens& tokens,
                                  const std::filesystem::path& home);

// Splits a line into words with the quoting rules of ssh_config(5). A "#" outside quotes ends the line.
// Returns false if a quote is not closed.
bool split_arguments(std::string_view text, std::vector<std::string>& words);
// Matches a name against a comma-separated or blank-separated pattern list with negation. Returns 1 if it
// matches, -1 if a "!pattern" matches, 0 otherwise.
int match_pattern_list(const std::string& name, const std::vector<std::string>& patterns);

}  // namespace remote::ssh
