#include "config/section.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "config/validate.hpp"

namespace remote::config {
namespace {

constexpr std::size_t max_warnings = 20;

bool knows(Level level, const std::string& key) {
  const auto& keys = known_keys(level);
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string place_of(Level level) {
  constexpr std::array places = {"at the top level", "under a server's name", "under 'python'",
                                 "under 'launch'",   "under 'container'",     "under 'history'",
                                 "under 'notify'",   "under 'checkpoint'"};
  return places.at(static_cast<std::size_t>(level));
}

// Other names that people and other tools use for the keys of a server.
const std::string* meant_key(const std::string& key) {
  static const std::map<std::string, std::string> meant = {{"user", "username"},
                                                           {"login", "username"},
                                                           {"user_name", "username"},
                                                           {"remote_user", "username"},
                                                           {"host", "hostname"},
                                                           {"host_name", "hostname"},
                                                           {"ip", "hostname"},
                                                           {"ip_address", "hostname"},
                                                           {"address", "hostname"},
                                                           {"addr", "hostname"},
                                                           {"server", "hostname"},
                                                           {"key", "private_key"},
                                                           {"key_file", "private_key"},
                                                           {"keyfile", "private_key"},
                                                           {"identity", "private_key"},
                                                           {"identityfile", "private_key"},
                                                           {"identity_file", "private_key"},
                                                           {"ssh_key", "private_key"},
                                                           {"pem", "private_key"},
                                                           {"passwd", "password"},
                                                           {"pass", "password"},
                                                           {"jump", "proxy_jump"},
                                                           {"proxyjump", "proxy_jump"},
                                                           {"jump_host", "proxy_jump"},
                                                           {"bastion", "proxy_jump"},
                                                           {"gateway", "proxy_jump"},
                                                           {"folder", "remote_path"},
                                                           {"path", "remote_path"},
                                                           {"directory", "remote_path"},
                                                           {"gpu", "gpus"},
                                                           {"num_gpus", "gpus"},
                                                           {"internal_ip", "internal_address"},
                                                           {"private_ip", "internal_address"}};
  const auto found = meant.find(key);
  return found == meant.end() ? nullptr : &found->second;
}

// Normalizes a key: "Private-Key" becomes private_key.
std::string plain_key(const std::string& key) {
  std::string plain = lower_case(key);
  std::ranges::replace(plain, '-', '_');
  return plain;
}

// The advice about an unknown key: a name of labml_remote, a key in the wrong place, or a typo.
struct Advice {
  std::string text;
  bool typing_error = false;  // similar to a valid key of this section
};
Advice advice(Level level, const std::string& key) {
  const std::string plain = plain_key(key);
  const std::string word = plain.substr(0, plain.find_first_of(" :"));
  if (word.size() < plain.size() &&
      (knows(level, word) || (level == Level::server && meant_key(word) != nullptr))) {
    return {plain[word.size()] == ':' ? "; a blank is missing after '" + word + ":'"
                                      : "; a ':' is missing after '" + word + "'"};
  }
  if (level == Level::server) {
    if (const std::string* meant = meant_key(plain)) {
      return {"; did you mean '" + *meant + "'?"};
    }
  }
  if (plain == "python_version") {
    return {"; write python: {version: …}"};
  }
  if (plain == "use_conda") {
    return {"; write python: {manager: conda} or {manager: venv}"};
  }
  for (const Level other : {Level::top, Level::server, Level::python, Level::launch, Level::container,
                            Level::history, Level::notify, Level::checkpoint}) {
    if (other != level && knows(other, plain)) {
      return {"; it belongs " + place_of(other)};
    }
  }
  const std::string near = did_you_mean(plain, known_keys(level));
  return near.empty() ? Advice{} : Advice{"; " + near, true};
}

std::string kind_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return "'" + printable(node.text) + "'";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
  }
  return {};
}

// "{hostname: gpu1, username: root, port: 40022}" for "root@gpu1:40022".
std::string write_address(const std::string& text) {
  HostPort at;
  at.host = text;
  try {
    at = parse_host_port(text, "");
  } catch (const Error&) {
    // The same error follows for the hostname.
  }
  return "{hostname: " + printable(at.host) + (at.user ? ", username: " + printable(*at.user) : "") +
         (at.port ? ", port: " + std::to_string(*at.port) : "") + "}";
}

// A hint if there is a string instead of a map: the key that was probably meant.
std::string hint_for_map(Level level, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.text.empty()) {
    return {};
  }
  const std::string word = node.text.substr(0, node.text.find_first_of(" :\n"));
  const std::string* meant = level == Level::server ? meant_key(plain_key(word)) : nullptr;
  const std::string key = meant != nullptr ? *meant : word;
  if (knows(level, key) && word.size() < node.text.size()) {
    const bool colon = node.text[word.size()] == ':';
    return std::string(colon ? "a blank" : "a ':'") + " is missing after '" + printable(word) +
           (colon ? ":'" : "'") + "; write " + key + ": VALUE";
  }
  if (level == Level::server && node.text.find_first_of(" \t\n") == std::string::npos) {
    return "there is only an address under the server's name; write " + write_address(node.text);
  }
  if (level == Level::python && word == node.text) {
    return "write {manager: " + printable(word) + "}";
  }
  return {};
}

}  // namespace

void Warnings::add(Mark mark, const std::string& text) {
  if (full()) {
    leave_out();
  } else {
    texts_.push_back(file_ + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column) + ": " +
                     text);
  }
}

bool Warnings::full() const {
  return texts_.size() >= max_warnings;
}

std::vector<std::string> Warnings::take() {
  if (left_out_ > 0) {
    texts_.push_back(file_ + ": and " + std::to_string(left_out_) + " more such warnings");
  }
  return std::move(texts_);
}

const std::vector<std::string>& known_keys(Level level) {
  // Indexed by Level.
  static const std::array<std::vector<std::string>, 8> keys = {
      {{"name",
        "servers",
        "scripts_folder",
        "logs_folder",
        "jobs_folder",
        "exclude_file",
        "remote_scripts_folder_name",
        "remote_jobs_folder_name",
        "remote_path",
        "agent",
        "python",
        "system_packages",
        "host_keys",
        "connect_timeout",
        "connection",
        "launch",
        "launches",
        "history",
        "prologue",
        "container",
        "notify",
        "outputs",
        "checkpoint",
        "spares"},
       {"hostname",  "username",    "private_key",      "password",      "password_env", "password_command",
        "port",      "proxy_jump",  "internal_address", "gpus",          "env",          "remote_path",
        "agent",     "known_hosts", "properties",       "prologue",      "scheduler",    "partition",
        "account",   "time",        "constraint",       "gpus_per_node", "sbatch",       "container",
        "connection"},
       {"manager", "version", "system_site_packages", "environment", "miniconda_url", "miniconda_sha256",
        "index_url", "extra_index_urls", "extra_index_url", "find_links", "constraints", "no_index", "conda"},
       {"cmd",      "nproc_per_node", "env",         "servers", "launcher", "init_method",
        "init_dir", "follow",         "on_failure",  "rsync",   "check",    "frozen",
        "restarts", "restart_on",     "min_servers", "rdzv",    "nnodes",   "max_restarts",
        "pull",     "hang_after",     "on_hang",     "gpus",    "cpus",     "memory",
        "wait",     "no_restart_exit"},
       {"engine", "image", "args", "workdir", "pull"},
       {"columns"},
       {"url", "shape", "command"},
       {"files", "complete"}}};
  return keys.at(static_cast<std::size_t>(level));
}

const YamlNode::Entry* Section::misnamed(const std::string& key) const {
  const auto found = std::ranges::find_if(map_->entries, [&](const YamlNode::Entry& entry) {
    const std::string* meant = meant_key(plain_key(entry.key));
    return meant != nullptr && *meant == key && !knows(Level::server, entry.key);
  });
  return found == map_->entries.end() ? nullptr : &*found;
}

Section::Section(const YamlNode& node, Level level, std::string what, const std::string& file,
                 Warnings& warnings)
    : map_(&node), what_(std::move(what)), file_(file) {
  if (node.kind != YamlNode::Kind::map && node.kind != YamlNode::Kind::null) {
    const std::string name = what_.substr(std::min(what_.find('\'') + 1, what_.size()));
    const bool is_key =
        level == Level::server && name.ends_with('\'') && knows(level, name.substr(0, name.size() - 1));
    throw error(node.mark, what_ + " takes keys with values (key: value), and has " + kind_of(node),
                is_key ? "as a key of the server above, it begins in the same column as that one's other keys"
                       : hint_for_map(level, node));
  }
  // A server has about a dozen keys; with aliases, thousands of servers could have thousands of keys each.
  if (level == Level::server && node.entries.size() > 100) {
    throw error(node.mark, what_ + " has more than 100 keys");
  }
  warn_of_unknown_keys(level, warnings);
}

namespace {

// Whether a key is similar to one that decides where and how things run, so that ignoring it would have an
// unintended effect.
bool must_be_right(Level level, const YamlNode::Entry& entry) {
  const std::vector<std::string> deciding =
      level == Level::top
          ? std::vector<std::string>{"servers", "python", "container", "launch", "launches", "prologue"}
      : level == Level::python ? std::vector<std::string>{"manager", "version", "environment"}
                               : std::vector<std::string>{};
  return !did_you_mean(plain_key(entry.key), deciding).empty();
}

}  // namespace

void Section::warn_of_unknown_keys(Level level, Warnings& warnings) const {
  for (const YamlNode::Entry& entry : map_->entries) {
    // Keys "x-…" are by convention maps to be merged into others ("<<: *defaults").
    if (!knows(level, entry.key) && !entry.key.starts_with("x-")) {
      if (warnings.full()) {
        warnings.leave_out();
        continue;  // searching for the most similar key takes time
      }
      const std::string of = level == Level::top ? "" : " of " + what_;
      const auto [help, typing_error] = advice(level, entry.key);
      if (warnings.strict() || (typing_error && must_be_right(level, entry))) {
        throw error(entry.mark, "unknown key '" + printable(entry.key) + "'" + of,
                    help.empty() ? "take it out" : help.substr(2));
      }
      warnings.add(entry.mark, "unknown key '" + printable(entry.key) + "'" + of + " is ignored" + help);
    }
  }
}

void Section::wrong_type(const std::string& key, const YamlNode& found, const std::string& wanted) const {
  throw error(found.mark, "'" + key + "' must be " + wanted + ", not " + kind_of(found));
}

const YamlNode* Section::node(const std::string& key) const {
  const YamlNode::Entry* entry = map_->find(key);
  return entry == nullptr || entry->value->kind == YamlNode::Kind::null ? nullptr : entry->value.get();
}

std::optional<Found<std::string>> Section::text(const std::string& key) const {
  const YamlNode* found = node(key);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (found->kind != YamlNode::Kind::scalar) {
    wrong_type(key, *found, "a text");
  }
  if (found->text.empty()) {
    return std::nullopt;
  }
  return Found<std::string>{found->text, found->mark};
}

Error Section::unfit(const std::string& key, const Found<std::string>& found,
                     const std::string& problem) const {
  return error(found.mark, "'" + key + "' cannot be '" + printable(found.value) + "'", problem);
}

std::optional<std::string> Section::checked(
    const std::string& key, std::optional<std::string> (*problem_of)(const std::string&)) const {
  const auto found = text(key);
  if (!found) {
    return std::nullopt;
  }
  if (const auto problem = problem_of(found->value)) {
    throw unfit(key, *found, *problem);
  }
  return found->value;
}

std::optional<int> Section::number(const std::string& key, int low, int high) const {
  const auto written = text(key);
  if (!written) {
    return std::nullopt;
  }
  const std::string range = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  const auto value = parse_number<int>(written->value);
  // YAML readers disagree on numbers such as 022: 18 or 22.
  const bool ambiguous = written->value.size() > 1 && written->value[0] == '0';
  if (!value || ambiguous || *value < low || *value > high) {
    throw error(written->mark,
                "'" + key + "' must be " + range + ", not '" + printable(written->value) + "'");
  }
  return value;
}

std::optional<bool> Section::boolean(const std::string& key) const {
  const auto written = text(key);
  if (!written) {
    return std::nullopt;
  }
  const std::string lower = lower_case(written->value);
  if (lower == "true" || lower == "yes" || lower == "on") {
    return true;
  }
  if (lower == "false" || lower == "no" || lower == "off") {
    return false;
  }
  throw error(written->mark, "'" + key + "' must be true or false, not '" + printable(written->value) + "'");
}

std::vector<Found<std::string>> Section::texts(const std::string& key) const {
  std::vector<Found<std::string>> values;
  const YamlNode* found = node(key);
  if (found == nullptr) {
    return values;
  }
  if (found->kind != YamlNode::Kind::list) {
    if (found->kind != YamlNode::Kind::scalar) {
      wrong_type(key, *found, "a list of texts");
    }
    if (!found->text.empty()) {
      values.push_back({found->text, found->mark});
    }
    return values;
  }
  for (const NodePtr& item : found->items) {
    if (item->kind != YamlNode::Kind::scalar || item->text.empty()) {
      throw error(item->mark, "each item of '" + key + "' must be a text, but this is " +
                                  (item->kind == YamlNode::Kind::scalar ? "empty" : kind_of(*item)));
    }
    values.push_back({item->text, item->mark});
  }
  return values;
}

std::vector<std::pair<std::string, std::string>> Section::variables(const std::string& key) const {
  std::vector<std::pair<std::string, std::string>> all;
  const YamlNode* found = node(key);
  if (found == nullptr) {
    return all;
  }
  if (found->kind != YamlNode::Kind::map) {
    throw error(found->mark, "'" + key + "' must be a map of variables",
                "write " + key + ": {NCCL_DEBUG: WARN}");
  }
  for (const YamlNode::Entry& entry : found->entries) {
    if (entry.value->kind == YamlNode::Kind::list || entry.value->kind == YamlNode::Kind::map) {
      throw error(entry.mark, "the value of '" + printable(entry.key) + "' must be a text");
    }
    try {
      check_variable(entry.key);
    } catch (const Error& problem) {
      throw error(entry.mark, problem.what_failed(), problem.reason());
    }
    all.emplace_back(entry.key, entry.value->text);
  }
  return all;
}

}  // namespace remote::config
