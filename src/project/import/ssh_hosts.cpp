// The hosts of an ssh_config(5): each name of a `Host` line that is no pattern, with what holds for it in
// this file. Files that it includes are not read.

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "project/import/parts.hpp"
#include "ssh/ssh_config.hpp"

namespace remote::project {
namespace {

// The keyword of a line, in lower case, and what follows it.
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

FoundServer host_of(const std::string& name, const std::string& where, const ssh::ConfigSource& source,
                    ServerListBuilder& list) {
  ssh::ConfigQuery query;
  query.host = name;
  query.home = home_folder();
  const ssh::HostOptions options = ssh::read_ssh_config({source}, query);
  const auto value = [&](const char* key) {
    const ssh::ConfigValue* found = options.find(key);
    return found == nullptr ? std::string() : found->text;
  };
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
  return found;
}

}  // namespace

void read_ssh_hosts(std::string_view text, ServerListBuilder& list) {
  ssh::ConfigSource source;
  source.path = list.file();
  std::vector<std::pair<std::string, std::string>> names;  // and where
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
  // Each is looked up in all of the file.
  if (names.size() * text.size() > std::size_t{1} << 28U) {
    throw Error::usage(list.file(), "it is too large");
  }
  for (const auto& [name, where] : names) {
    list.add(host_of(name, where, source, list));
  }
}

}  // namespace remote::project
