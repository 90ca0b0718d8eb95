#include "cli/line_meaning.hpp"

#include <algorithm>

#include "base/simple_commands.hpp"
#include "base/strings.hpp"
#include "cli/parser.hpp"
#include "cli/word_list.hpp"

namespace remote::cli {
namespace {

// Excludes keys, servers, settings files and words such as CLUSTER.
bool may_be_program(const std::string& word, const WordList& servers) {
  const auto is_capital = [](unsigned char c) { return c >= 'A' && c <= 'Z'; };
  const bool is_setting = word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
  return !word.empty() && !is_setting && !is_job_key(word) && server_in(word, servers).empty() &&
         word.find('@') == std::string::npos && !std::ranges::all_of(word, is_capital);
}

bool starts_program(const ParsedLine& line, const WordList& servers) {
  if (!line.program) {
    return line.has("--cmd");
  }
  const std::string first = word_at(line.program->words, 0);
  const bool gets_python = line.command == "torch-launch";
  return may_be_program(first, servers) && (!first.starts_with('-') || (gets_python && first == "-m")) &&
         (gets_python || first.find('/') != std::string::npos || !first.ends_with(".py")) &&
         (first.find('/') != std::string::npos || !first.ends_with(".sh"));
}

bool are_servers(const WordList& values, const WordList& servers) {
  return std::ranges::all_of(values, [&](const std::string& value) {
    return std::ranges::all_of(split(value, ','), [&](const std::string& name) {
      return std::ranges::find(servers, name) != servers.end();
    });
  });
}

}  // namespace

std::string server_in(const std::string& word, const WordList& servers) {
  const std::string name = word.substr(word.find('@') + 1);
  return std::ranges::find(servers, name) == servers.end() ? "" : name;
}

bool is_job_key(const std::string& word) {
  const std::size_t dash = std::min(word.find('-'), word.size());
  const bool is_id = word.size() >= 6 && word.find_first_not_of("0123456789abcdef") == std::string::npos &&
                     word.find_first_of("0123456789") != std::string::npos;
  return word == "last" || is_id ||
         (is_number(word.substr(0, dash)) && (dash == word.size() || is_number(word.substr(dash + 1))));
}

bool is_meant(const WordList& line, const WordList& servers) {
  const ParsedLine parsed = parse_line(line);
  const auto values = [&](const char* name) {
    const auto found = parsed.values.find(name);
    return found == parsed.values.end() ? WordList() : found->second;
  };
  const bool is_one = servers.size() == 1;
  const std::string& command = parsed.command;
  if (!parsed.is_accepted || !are_servers(values("--server"), servers)) {
    return false;
  }
  if (has_name(" run job-run launch torch-launch ", command)) {
    return starts_program(parsed, servers) && (command != "job-run" || is_one || parsed.has("--server"));
  }
  if (command == "shell") {
    return parsed.has("server") ? are_servers(values("server"), servers) : is_one;
  }
  if (command == "forward") {
    const WordList ports = values("ports");
    const auto is_port = [](const std::string& word) {
      return !word.empty() && is_number(word.substr(word.size() - 1));
    };
    return ports.size() > 1 && are_servers({ports[0]}, servers) &&
           std::ranges::all_of(tail_of(ports), is_port);
  }
  if (command == "job-pull") {
    const WordList paths = values("words");
    return paths.size() > 1 && is_job_key(paths[0]) && paths.back() != "." && paths.back() != "..";
  }
  return std::ranges::all_of(joined(values("keys"), values("launch")), is_job_key);
}

}  // namespace remote::cli
