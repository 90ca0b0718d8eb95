#include "config/validate.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <remote/error.hpp>

#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "config/config.hpp"
#include "config/yaml_reader.hpp"

namespace remote::config {
namespace {

bool has_control(const std::string& text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

constexpr std::string_view no_colon = "it has a ':', which separates the folders of PATH and PYTHONPATH";

bool names_other_home(const std::string& path) {
  return path.starts_with('~') && path != "~" && !path.starts_with("~/");
}

// The first problem whose condition is true.
std::optional<std::string> first_of(const std::vector<std::pair<bool, std::string>>& problems) {
  for (const auto& [there, problem] : problems) {
    if (there) {
      return problem;
    }
  }
  return std::nullopt;
}

}  // namespace

bool valid_server_name(const std::string& name) {
  return !name.empty() && name.size() <= 100 && name[0] != '.' && name[0] != '-' &&
         std::ranges::all_of(name, is_name_char);
}

std::optional<std::string> server_name_problem(const std::string& name) {
  return first_of({
      {name.size() > 100, "it is longer than 100 characters"},
      {!valid_server_name(name), "a server's name has letters, digits, '_' and, not first, '.' and '-'"},
  });
}

std::optional<std::string> launch_name_problem(const std::string& name) {
  constexpr std::string_view digits_and_dots = "0123456789.-";
  const bool good = !name.empty() && name.size() <= 100 && name != "last" &&
                    digits_and_dots.find(name[0]) == std::string_view::npos &&
                    std::ranges::all_of(name, is_name_char);
  return good ? std::nullopt
              : std::optional<std::string>(
                    "a name has letters, digits, '.', '_' and '-', begins with a letter or '_', and is not "
                    "'last'");
}

std::optional<std::string> git_problem(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  const bool found = std::ranges::any_of(
      normal, [](const std::filesystem::path& part) { return lower_case(part.string()) == ".git"; });
  return found ? std::optional<std::string>("it is git's own") : std::nullopt;
}

std::optional<std::string> component_problem(const std::string& name) {
  return first_of({
      {name.empty(), "it is empty"},
      {name == "." || name == "..", "'" + name + "' is not a name for a folder"},
      {name.find('/') != std::string::npos, "it must be the name of one folder, without '/'"},
      {has_control(name), "it has a control character"},
      {name.size() > 200, "it is longer than 200 bytes"},
      {git_problem(name).has_value(), "it is git's own"},
      {name.find(':') != std::string::npos, std::string(no_colon)},
  });
}

std::optional<std::string> name_problem(const std::string& name) {
  if (auto problem = component_problem(name)) {
    return problem;
  }
  return first_of({
      {name[0] == '-' || name[0] == '~', std::string("it begins with '") + name[0] + "'"},
      {name.front() == ' ' || name.back() == ' ', "it begins or ends with a space"},
  });
}

std::optional<std::string> host_problem(const std::string& host) {
  // '%' starts the zone of a link-local IPv6 address. UTF-8 is passed to the resolver.
  const bool good = std::ranges::all_of(host, [](char c) {
    return is_name_char(c) || c == ':' || c == '%' || static_cast<unsigned char>(c) >= 0x80;
  });
  return first_of({
      {host.empty(), "it is empty"},
      {host.size() > 255, "it is longer than 255 characters"},
      {host.starts_with('-'), "it begins with '-'"},
      {host.find('@') != std::string::npos, "it holds a '@': the user goes under 'username'"},
      {host.find('/') != std::string::npos, "it holds a '/': give an address or a name, not a URL"},
      {!good, "it holds a character that no address or name has"},
      {std::ranges::count(host, ':') == 1, "it holds a ':': the port goes under 'port'"},
  });
}

std::optional<std::string> user_problem(const std::string& user) {
  const bool strange = user.find_first_of(" :/'\"`$&|;<>()") != std::string::npos;
  return first_of({
      {user.empty(), "it is empty"},
      {user.starts_with('-'), "it begins with '-'"},
      {has_control(user) || strange || user.size() > 255, "it is not a user name"},
  });
}

std::optional<std::string> proxy_jump_problem(const std::string& jumps) {
  if (jumps == "none") {
    return std::nullopt;
  }
  const auto parts = split(jumps, ',');
  if (parts.empty() || parts.size() > 16) {
    return parts.empty() ? "it is empty" : "it names more than 16 hosts";
  }
  for (const std::string& part : parts) {
    try {
      parse_host_port(std::string(trim(part)), "");
    } catch (const Error& error) {
      return "'" + printable(part) + "': " + error.reason();
    }
  }
  return std::nullopt;
}

std::optional<std::string> inside_problem(const std::string& path) {
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  return first_of({
      {has_control(path), "it has a control character"},
      {path.starts_with('/') || path.starts_with('~'), "it must be a path in the project"},
      {normal == ".." || normal.starts_with("../"), "it leaves the project"},
      {normal.empty() || normal == "." || normal == "./", "it must not be the project's folder itself"},
  });
}

std::optional<std::string> written_folder_problem(const std::string& path) {
  if (auto problem = inside_problem(path)) {
    return problem;
  }
  return git_problem(path);
}

std::optional<std::string> remote_path_problem(const std::string& path) {
  const auto parts = split(path, '/');
  const bool bare = path.find_first_not_of("~/.") == std::string::npos;
  return first_of({
      {has_control(path), "it has a control character"},
      {names_other_home(path), "only the login's own home can be named by '~'"},
      {path.find('$') != std::string::npos, "no variable is expanded in it: write ~/x for $HOME/x"},
      {std::ranges::find(parts, "..") != parts.end(), "it holds '..'"},
      {bare, "the project needs its own folder there"},
      {git_problem(path).has_value(), "it is git's own"},
      {path.find(':') != std::string::npos, std::string(no_colon)},
  });
}

std::optional<std::string> agent_folder_problem(const std::string& path) {
  const auto parts = split(path, '/');
  return first_of({
      {has_control(path), "it has a control character"},
      {names_other_home(path), "'~' can only be your own home directory"},
      {std::ranges::find(parts, "..") != parts.end(), "it has '..'"},
      {path.find_first_not_of("~/.") == std::string::npos, "the agent needs its own folder"},
      {!is_plain_in_every_shell(path),
       "it has a quote, a backslash, '$', '`' or '!', which login shells read differently"},
  });
}

HostPort parse_host_port(const std::string& text, const std::string& where) {
  const auto fail = [&](const std::string& reason) {
    return Error::usage(where, reason, "write it as [USER@]HOST[:PORT], an IPv6 address as [ADDRESS]:PORT");
  };
  HostPort result;
  std::string rest = text;
  if (const std::size_t at = rest.rfind('@'); at != std::string::npos) {
    result.user = rest.substr(0, at);
    rest.erase(0, at + 1);
    if (const auto problem = user_problem(*result.user)) {
      throw fail("the user: " + *problem);
    }
  }
  std::optional<std::string> port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string::npos) {
      throw fail("there is no ']'");
    }
    result.host = rest.substr(1, end - 1);
    if (std::count(result.host.begin(), result.host.end(), ':') < 2) {
      throw fail("no IPv6 address between '[' and ']'");
    }
    if (end + 1 < rest.size()) {
      if (rest[end + 1] != ':') {
        throw fail("only ':PORT' can follow ']'");
      }
      port = rest.substr(end + 2);
    }
  } else if (std::count(rest.begin(), rest.end(), ':') == 1) {
    const std::size_t colon = rest.find(':');
    result.host = rest.substr(0, colon);
    port = rest.substr(colon + 1);
  } else {
    result.host = rest;
  }
  if (const auto problem = host_problem(result.host)) {
    throw fail("the host: " + *problem);
  }
  if (port) {
    result.port = parse_number<int>(*port);
    if (!result.port || *result.port < 1 || *result.port > 65535) {
      throw fail("the port must be a number from 1 to 65535");
    }
  }
  return result;
}

}  // namespace remote::config
