#include "config/validate.hpp"

#include <algorithm>
#include <filesystem>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "config/config.hpp"
#include "config/report.hpp"

namespace remote::config {
namespace {

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

bool has_dotdot(const std::string& path) {
  const auto parts = split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

}  // namespace

bool valid_server_name(const std::string& name) {
  return !name.empty() && name.size() <= 100 && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), is_name_char);
}

std::optional<std::string> server_name_problem(const std::string& name) {
  if (valid_server_name(name)) {
    return std::nullopt;
  }
  if (name.size() > 100) {
    return "it is longer than 100 characters";
  }
  return "a server's name has letters, digits, '.', '_' and '-', and does not begin with '.' or '-'";
}

std::optional<std::string> component_problem(const std::string& name) {
  if (name.empty()) {
    return "it is empty";
  }
  if (name == "." || name == "..") {
    return "'" + name + "' is no name for a folder";
  }
  if (name.find('/') != std::string::npos) {
    return "it must be the name of one folder, without '/'";
  }
  if (has_control(name)) {
    return "it has a control character";
  }
  if (name.size() > 200) {
    return "it is longer than 200 bytes";
  }
  return std::nullopt;
}

std::optional<std::string> name_problem(const std::string& name) {
  if (auto problem = component_problem(name)) {
    return problem;
  }
  if (name[0] == '-' || name[0] == '~') {
    return std::string("it begins with '") + name[0] + "'";
  }
  if (name.front() == ' ' || name.back() == ' ') {
    return "it begins or ends with a space";
  }
  return std::nullopt;
}

std::optional<std::string> host_problem(const std::string& host) {
  if (host.empty()) {
    return "it is empty";
  }
  if (host.size() > 255) {
    return "it is longer than 255 characters";
  }
  if (host[0] == '-') {
    return "it begins with '-'";
  }
  if (host.find('@') != std::string::npos) {
    return "it holds a '@': the user goes under 'username'";
  }
  if (host.find("://") != std::string::npos || host.find('/') != std::string::npos) {
    return "it holds a '/': give an address or a name, not a URL";
  }
  for (const char c : host) {
    const auto byte = static_cast<unsigned char>(c);
    // '%' is the zone of a link-local IPv6 address. Bytes of UTF-8 are let through for the resolver to judge.
    if (!is_name_char(c) && c != ':' && c != '%' && byte < 0x80) {
      return "it holds a character that no address or name has";
    }
  }
  const auto colons = std::count(host.begin(), host.end(), ':');
  if (colons == 1) {
    return "it holds a ':': the port goes under 'port'";
  }
  return std::nullopt;
}

std::optional<std::string> user_problem(const std::string& user) {
  if (user.empty()) {
    return "it is empty";
  }
  if (user[0] == '-') {
    return "it begins with '-'";
  }
  if (has_control(user) || user.find_first_of(" :/'\"`$&|;<>()") != std::string::npos || user.size() > 255) {
    return "it is no user name";
  }
  return std::nullopt;
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
  if (has_control(path)) {
    return "it has a control character";
  }
  if (path.starts_with('/') || path.starts_with('~')) {
    return "it must be a path in the project";
  }
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal == ".." || normal.starts_with("../")) {
    return "it leaves the project";
  }
  if (normal.empty() || normal == "." || normal == "./") {
    return "it must not be the project's folder itself";
  }
  return std::nullopt;
}

std::optional<std::string> remote_path_problem(const std::string& path) {
  if (has_control(path)) {
    return "it has a control character";
  }
  if (path.starts_with('~') && path != "~" && !path.starts_with("~/")) {
    return "only the login's own home can be named by '~'";
  }
  if (has_dotdot(path)) {
    return "it holds '..'";
  }
  const bool bare = path.find_first_not_of("~/.") == std::string::npos;
  if (path.empty() || bare) {
    return "the project needs a folder of its own there";
  }
  return std::nullopt;
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
