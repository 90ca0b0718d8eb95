#include "ssh/ssh_config.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <glob.h>
#include <remote/error.hpp>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/kept_modes.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
namespace {

constexpr int include_depth = 16;
constexpr int include_limit =
    1000;  // files in total: otherwise, a file that includes itself twice would be read 2^16 times

// The supported keys; the rest of ssh_config(5) is ignored.
constexpr std::array keys{
    "hostname",
    "user",
    "port",
    "identityfile",
    "identityagent",
    "proxyjump",
    "proxycommand",
    "identitiesonly",
    "certificatefile",
    "userknownhostsfile",
    "hostkeyalias",
    "hashknownhosts",
    "connecttimeout",
    "stricthostkeychecking",
    "compression",
    "controlpath",
    "gssapiauthentication",
    "pkcs11provider",
    "securitykeyprovider",
};

bool adds_up(std::string_view key) {
  return key == "identityfile" || key == "certificatefile";
}

constexpr std::string_view blanks = " \t\r\f";

bool is_blank(char c) {
  return blanks.find(c) != std::string_view::npos;
}

std::string_view trim_left(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(blanks), text.size()));
}

// Removes the keyword from a line: everything up to a blank or one "=", or a quoted word.
std::string take_keyword(std::string_view& line) {
  line = trim_left(line);
  const std::size_t quote = line.starts_with('"') ? 1 : 0;
  const std::size_t end = std::min(line.find_first_of(quote == 1 ? "\"" : " \t\r\f=", quote), line.size());
  std::string word(line.substr(quote, end - quote));
  line = trim_left(line.substr(std::min(end + quote, line.size())));
  if (quote == 0 && line.starts_with('=')) {
    line = trim_left(line.substr(1));
  }
  return word;
}

// OpenSSH's patterns only support "*" and "?".
bool match_pattern(std::string_view pattern, const std::string& name) {
  std::string glob;
  for (const char c : pattern) {
    glob += c == '[' ? "[[]" : std::string(1, c);
  }
  return glob_match(glob, name);
}

}  // namespace

bool split_arguments(std::string_view text, std::vector<std::string>& words) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (is_blank(text[i])) {
      ++i;
      continue;
    }
    if (text[i] == '#') {
      return true;
    }
    std::string word;
    char quote = '\0';
    for (; i < text.size(); ++i) {
      const char c = text[i];
      const char next = i + 1 < text.size() ? text[i + 1] : '\0';
      if (c == '\\' && (next == '\'' || next == '"' || next == '\\' || (quote == '\0' && next == ' '))) {
        word += next;
        ++i;
      } else if (quote == '\0' && is_blank(c)) {
        break;
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote != '\0' && c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    }
    if (quote != '\0') {
      return false;
    }
    words.push_back(std::move(word));
  }
  return true;
}

int match_pattern_list(const std::string& name, const std::vector<std::string>& patterns) {
  int result = 0;
  for (const std::string& pattern : patterns) {
    const bool negated = pattern.starts_with('!');
    if (match_pattern(std::string_view(pattern).substr(negated ? 1 : 0), name)) {
      if (negated) {
        return -1;
      }
      result = 1;
    }
  }
  return result;
}

std::string expand_tokens(std::string_view text, const Tokens& tokens) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char letter = text[++i];
    if (letter == '%') {
      result += '%';
    } else if (const auto found = tokens.find(letter); found != tokens.end()) {
      result += found->second;
    } else {
      result += '%';
      result += letter;
    }
  }
  return result;
}

fs::path expand_path(std::string_view text, const Tokens& tokens, const fs::path& home) {
  std::string path = expand_tokens(text, tokens);
  std::size_t start = 0;
  while ((start = path.find("${", start)) != std::string::npos) {
    const std::size_t end = path.find('}', start);
    if (end == std::string::npos) {
      break;
    }
    const char* value = std::getenv(path.substr(start + 2, end - start - 2).c_str());
    const std::string replacement = value != nullptr ? value : "";
    path.replace(start, end - start + 1, replacement);
    start += replacement.size();
  }
  return expand_home(path, home);
}

const ConfigValue* HostOptions::find(std::string_view key) const {
  const auto& values = all(key);
  return values.empty() ? nullptr : &values.front();
}

const std::vector<ConfigValue>& HostOptions::all(std::string_view key) const {
  static const std::vector<ConfigValue> none;
  const auto found = values_.find(key);
  return found == values_.end() ? none : found->second;
}

// Reads files line by line and keeps the values for the host in question.
class ConfigReader {
 public:
  explicit ConfigReader(const ConfigQuery& query) : query_(query) {}

  HostOptions read(const std::vector<ConfigSource>& sources) {
    const auto read_all = [&] {
      for (const ConfigSource& source : sources) {
        read_source(source, true, 0);
      }
    };
    read_all();
    if (wants_final_) {
      final_ = true;
      read_all();
    }
    return std::move(options_);
  }

 private:
  void read_source(const ConfigSource& source, bool applies, int depth) {
    const bool outer = applies;
    int number = 0;
    for (const std::string& raw : split(source.text, '\n')) {
      ++number;
      std::string_view line = trim(raw);
      if (line.empty() || line.front() == '#') {
        continue;
      }
      const std::string origin = fmt::format("{}:{}", shown(source.path), number);
      const std::string key = lower_case(take_keyword(line));
      std::vector<std::string> words;
      if (key == "proxycommand") {
        // The rest of the line stays as it is, because a shell interprets it.
        if (applies) {
          keep(key, lower_case(line) == "none" ? "none" : std::string(line), origin);
        }
        continue;
      }
      if (!split_arguments(line, words)) {
        warn(origin, "a quote is not closed");
        continue;
      }
      if (words.empty()) {
        continue;
      }
      if (key == "host") {
        applies = match_pattern_list(query_.host, words) > 0 && outer;
      } else if (key == "match") {
        applies = matches(words, origin, outer) && outer;
      } else if (key == "include") {
        for (const std::string& pattern : words) {
          include(pattern, source, applies, depth, origin);
        }
      } else if (applies && std::ranges::find(keys, key) != keys.end()) {
        // Several files are stored in one value, which split_arguments() splits later.
        const bool all = key == "userknownhostsfile";
        keep(key, all ? fmt::format("\"{}\"", fmt::join(words, "\" \"")) : words.front(), origin);
      }
    }
  }

  void include(const std::string& pattern, const ConfigSource& from, bool applies, int depth,
               const std::string& origin) {
    if (depth + 1 > include_depth || included_ > include_limit) {
      warn(origin, "files include each other too deep");
      return;
    }
    fs::path path = expand_path(pattern, {}, query_.home);
    if (path.is_relative()) {
      path = from.include_base / path;
    }
    glob_t found{};
    if (::glob(path.c_str(), 0, nullptr, &found) == 0) {
      for (std::size_t i = 0; i < found.gl_pathc; ++i) {
        if (++included_ > include_limit || is_folder(found.gl_pathv[i])) {
          continue;
        }
        try {
          const std::string why = others_hand(fs::path(found.gl_pathv[i]));
          if (!why.empty()) {
            warn(origin, std::string(found.gl_pathv[i]) + " is passed by: " + why);
          } else if (auto text = read_file_if_there(found.gl_pathv[i])) {
            read_source({found.gl_pathv[i], remove_byte_order_mark(std::move(*text), found.gl_pathv[i]),
                         from.include_base},
                        applies, depth + 1);
          }
        } catch (const Error& error) {
          warn(origin, error.message());
        }
      }
    }
    ::globfree(&found);
  }

  // Whether the criteria of a Match line are true. `outer` is false inside a block that does not apply, in
  // which case no command is run.
  bool matches(const std::vector<std::string>& words, const std::string& origin, bool outer) {
    bool result = true;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const bool negated = word.starts_with('!');
      std::string criterion = lower_case(std::string_view(word).substr(negated ? 1 : 0));
      std::string argument;
      if (const std::size_t equals = criterion.find('='); equals != std::string::npos) {
        argument = word.substr(equals + 1 + (negated ? 1 : 0));
        criterion.resize(equals);
      }
      bool holds = false;
      if (criterion == "all") {
        holds = true;
      } else if (criterion == "final" || criterion == "canonical") {
        wants_final_ = wants_final_ || (criterion == "final" && outer);
        holds = final_;
      } else {
        if (argument.empty()) {
          if (++i >= words.size()) {
            warn(origin, "Match " + criterion + " needs a value");
            return false;
          }
          argument = words[i];
        }
        const auto fits = judge(criterion, argument, result && outer);
        if (!fits) {
          warn(origin, "Match " + criterion + " is not supported, so the block is skipped");
          return false;
        }
        holds = *fits;
      }
      result = result && holds != negated;
    }
    return result;
  }

  // Whether a criterion is true; nullopt if it is unknown. `run`: a command may be run.
  std::optional<bool> judge(const std::string& criterion, const std::string& argument, bool run) {
    const std::map<std::string, std::string> names{{"host", host_so_far()},
                                                   {"originalhost", query_.host},
                                                   {"user", user_so_far()},
                                                   {"localuser", query_.local_user}};
    if (const auto name = names.find(criterion); name != names.end()) {
      return match_pattern_list(name->second, split(argument, ',')) > 0;
    }
    if (criterion != "exec") {
      return std::nullopt;
    }
    const ConfigValue* port = options_.find("port");
    const Tokens tokens{
        {'h', host_so_far()}, {'n', query_.host},       {'p', port != nullptr ? port->text : "22"},
        {'r', user_so_far()}, {'u', query_.local_user}, {'d', query_.home.string()}};
    return run && query_.exec && query_.exec(expand_tokens(argument, tokens));
  }

  std::string host_so_far() const {
    const ConfigValue* name = options_.find("hostname");
    return name == nullptr ? query_.host : expand_tokens(name->text, {{'h', query_.host}});
  }

  std::string user_so_far() const {
    const ConfigValue* user = options_.find("user");
    if (!query_.user.empty()) {
      return query_.user;
    }
    return user == nullptr ? query_.local_user : user->text;
  }

  void keep(const std::string& key, std::string text, const std::string& origin) {
    auto& values = options_.values_[key];
    if (adds_up(key)) {
      const bool known = std::ranges::any_of(values, [&](const auto& value) { return value.text == text; });
      if (!known) {
        values.push_back({std::move(text), origin});
      }
    } else if (values.empty()) {
      // ProxyJump and ProxyCommand exclude each other: the first one wins.
      if ((key == "proxyjump" && options_.find("proxycommand") != nullptr) ||
          (key == "proxycommand" && options_.find("proxyjump") != nullptr)) {
        return;
      }
      values.push_back({std::move(text), origin});
    }
  }

  std::string shown(const fs::path& path) const {
    const std::string home = query_.home.string();
    const std::string text = path.string();
    return !home.empty() && home != "/" && text.starts_with(home + "/") ? "~" + text.substr(home.size())
                                                                        : text;
  }

  void warn(const std::string& origin, const std::string& text) {
    if (options_.warnings_.size() < 100) {
      options_.warnings_.push_back(origin + ": " + text);
    }
  }

  const ConfigQuery& query_;
  HostOptions options_;
  bool final_ = false;
  bool wants_final_ = false;
  int included_ = 0;
};

HostOptions read_ssh_config(const std::vector<ConfigSource>& sources, const ConfigQuery& query) {
  return ConfigReader(query).read(sources);
}

std::vector<ConfigSource> ssh_config_sources(const fs::path& user_config) {
  std::vector<ConfigSource> sources;
  const auto add = [&](const fs::path& path, const fs::path& base) {
    if (auto text = read_file_if_there(path)) {
      sources.push_back({path, remove_byte_order_mark(std::move(*text), path), base});
    }
  };
  // Like ssh: a user who can write to this file could choose what this machine runs (ProxyCommand).
  if (const std::string why = others_hand(user_config); !why.empty()) {
    throw Error::usage("cannot use " + user_config.string(), why,
                       advise_mode(keeps_modes(user_config), "chmod 600 " + user_config.string(),
                                   "move the file to another one and link to it"));
  }
  add(user_config, user_config.parent_path());
  add("/etc/ssh/ssh_config", "/etc/ssh");
  return sources;
}

}  // namespace remote::ssh
