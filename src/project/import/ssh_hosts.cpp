// Hosts in an ssh_config(5): the names in `Host` lines that are not patterns, with their settings from this
// file. If several names on one line resolve to the same address, only the first becomes a server. Included
// files are not read.

#include <map>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "project/import/parts.hpp"
#include "ssh/ssh_config.hpp"

namespace remote::project {
namespace {

// The keyword of a line in lowercase, and its argument.
std::pair<std::string, std::string> keyword_of(std::string_view line) {
  line = trim(line);
  const std::size_t end = line.find_first_of(" \t=");
  if (end == std::string_view::npos) {
    return {lower_case(line), ""};
  }
  std::string_view rest = trim(line.substr(end));
  if (rest.starts_with('=')) {
    rest = trim(rest.substr(1));
  }
  return {lower_case(line.substr(0, end)), std::string(rest)};
}

ssh::HostOptions options_of(const std::string& name, const ssh::ConfigSource& source) {
  ssh::ConfigQuery query;
  query.host = name;
  query.home = home_folder();
  return ssh::read_ssh_config({source}, query);
}

std::string value_of(const ssh::HostOptions& options, std::string_view key) {
  const ssh::ConfigValue* found = options.find(key);
  return found == nullptr ? std::string() : found->text;
}

// The address that a name resolves to.
std::string place_of(const std::string& name, const ssh::ConfigSource& source) {
  const ssh::HostOptions options = options_of(name, source);
  const std::string hostname = ssh::expand_tokens(value_of(options, "hostname"), {{'h', name}});
  return (hostname.empty() ? name : hostname) + " " + value_of(options, "port") + " " +
         value_of(options, "user");
}

FoundServer host_of(const std::string& name, const std::string& where, const ssh::ConfigSource& source,
                    ServerListBuilder& list) {
  const ssh::HostOptions options = options_of(name, source);
  const auto value = [&](const char* key) { return value_of(options, key); };
  FoundServer found;
  found.name = name;
  found.where = where;
  found.hostname = ssh::expand_tokens(value("hostname"), {{'h', name}});
  found.user = value("user");
  found.port = value("port");
  found.proxy_jump = value("proxyjump");
  if (!options.all("identityfile").empty()) {
    found.key = options.all("identityfile").front().text;
    if (found.key == "none" || found.key.find_first_of("%$") != std::string::npos) {
      list.leave_out(name, "IdentityFile " + found.key);
      found.key.clear();
    }
  }
  if (!value("proxycommand").empty() && lower_case(value("proxycommand")) != "none") {
    list.leave_out(name, "ProxyCommand");
  }
  for (const auto& [key, shown] :
       {std::pair("userknownhostsfile", "UserKnownHostsFile"),
        std::pair("certificatefile", "CertificateFile"), std::pair("identityagent", "IdentityAgent"),
        std::pair("hostkeyalias", "HostKeyAlias")}) {
    std::vector<std::string> words;
    if (ssh::split_arguments(value(key), words) && !words.empty()) {
      list.leave_out(name, std::string(shown) + " " + join(words, " "));
    }
  }
  return found;
}

}  // namespace

void read_ssh_hosts(std::string_view text, ServerListBuilder& list) {
  ssh::ConfigSource source;
  source.path = list.file();
  std::vector<std::pair<std::string, std::string>> names;  // with their lines
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const auto [keyword, rest] = keyword_of(line);
    if (keyword == "include") {
      list.leave_out(list.where(number), "Include");
      source.text += '\n';
      continue;
    }
    source.text += line + "\n";
    std::vector<std::string> words;
    if (keyword == "host" && ssh::split_arguments(rest, words)) {
      for (const std::string& word : words) {
        if (word.find_first_of("*?!") == std::string::npos) {
          names.emplace_back(word, list.where(number));
        }
      }
    }
  }
  // Each lookup searches the whole file.
  if (names.size() * text.size() > std::size_t{1} << 28U) {
    throw Error::usage(list.file(), "it is too large", "is it the right file? give one with fewer includes");
  }
  std::map<std::string, std::string> of_line;  // this line's servers, by address
  std::string line;
  for (const auto& [name, where] : names) {
    if (where != line) {
      line = where;
      of_line.clear();
    }
    const auto [first, is_new] = of_line.emplace(place_of(name, source), name);
    if (is_new) {
      list.add(host_of(name, where, source, list));
    } else if (first->second != name) {
      list.leave_out(first->second, "its other name " + name);
    }
  }
}

}  // namespace remote::project
