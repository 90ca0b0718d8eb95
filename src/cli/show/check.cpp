#include "cli/show/check.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/context.hpp"
#include "cli/show/bandwidth.hpp"
#include "cli/show/burn.hpp"
#include "cli/show/error_json.hpp"
#include "cli/show/network.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

struct StatusLook {
  const char* word;
  ui::Style style;
};

StatusLook look_of(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return {"ok", ui::Style::green};
    case CheckStatus::warn:
      return {"warn", ui::Style::yellow};
    case CheckStatus::fail:
      return {"fail", ui::Style::red};
    case CheckStatus::skip:
      break;
  }
  return {"skip", ui::Style::dim};
}

bool is_bad(const Finding& finding) {
  return finding.status == CheckStatus::warn || finding.status == CheckStatus::fail;
}

CheckStatus worst_of(const ServerCheck& server) {
  if (!server.ok()) {
    return CheckStatus::fail;
  }
  return std::ranges::any_of(server.findings, is_bad) ? CheckStatus::warn : CheckStatus::ok;
}

// "Debian GNU/Linux 12, 16 threads, 64 GiB, Python 3.11.2, torch 2.1.0"
std::string machine_words(const ServerFacts& facts) {
  std::vector<std::string> words;
  if (!facts.os.empty()) {
    words.push_back(facts.os);
  }
  if (facts.threads > 0) {
    words.push_back(counted(static_cast<std::size_t>(facts.threads), "thread"));
  }
  if (facts.memory > 0) {
    words.push_back(fmt::format("{:.0f} GiB", static_cast<double>(facts.memory) / (1U << 30U)));
  }
  if (!facts.python.empty()) {
    words.push_back("Python " + facts.python);
  }
  if (!facts.torch.empty()) {
    words.push_back("torch " + facts.torch);
  }
  return join(words, ", ");
}

// The names of the findings with this status: "rsync, disk".
std::string names_of(const ServerCheck& server, CheckStatus status) {
  std::vector<std::string> names;
  for (const Finding& finding : server.findings) {
    if (finding.status == status) {
      names.push_back(finding.name);
    }
  }
  return join(names, ", ");
}

std::string summary_of(const ServerCheck& server) {
  std::string text;
  for (const CheckStatus status : {CheckStatus::fail, CheckStatus::warn}) {
    if (const std::string names = names_of(server, status); !names.empty()) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", look_of(status).word, names);
    }
  }
  if (text.empty() && server.facts) {
    text = machine_words(*server.facts);
  }
  return text;
}

// A finding that is not ok, with all servers that have it.
struct Trouble {
  Finding finding;
  std::vector<std::string> servers{};
  // By text and location, because servers may need different commands.
  struct Mend {
    Fix fix;
    std::vector<std::string> servers{};
  };
  std::vector<Mend> fixes{};
};

// A command with this option is shown once, with the names of all its servers.
constexpr const char* server_option = "--server ";

std::string without_server(const std::string& text, const std::string& server) {
  const std::string option = server_option + server;
  const std::size_t at = text.find(option);
  return at == std::string::npos ? text
                                 : text.substr(0, at) + server_option + text.substr(at + option.size());
}

std::string with_servers(const std::string& text, const std::vector<std::string>& servers) {
  const std::string option = server_option;
  const std::size_t at = text.find(option);
  return at == std::string::npos
             ? text
             : text.substr(0, at) + option + join(servers, ",") + text.substr(at + option.size());
}

void add_fix(Trouble& trouble, const std::string& server, const Fix& fix) {
  const std::string text = without_server(fix.text, server);
  const auto same = std::ranges::find_if(trouble.fixes, [&](const Trouble::Mend& mend) {
    return mend.fix.where == fix.where && mend.fix.text == text;
  });
  if (same == trouble.fixes.end()) {
    trouble.fixes.push_back({{fix.where, text, fix.harmless}, {server}});
  } else {
    same->servers.push_back(server);
  }
}

// Failures come first.
std::vector<Trouble> troubles_of(const CheckReport& report) {
  std::vector<Trouble> troubles;
  for (const ServerCheck& server : report.servers) {
    for (const Finding& finding : server.findings) {
      if (!is_bad(finding)) {
        continue;
      }
      auto same = std::ranges::find_if(troubles, [&](const Trouble& trouble) {
        return std::tie(trouble.finding.name, trouble.finding.status, trouble.finding.detail) ==
               std::tie(finding.name, finding.status, finding.detail);
      });
      if (same == troubles.end()) {
        troubles.push_back({finding});
        same = std::prev(troubles.end());
      }
      same->servers.push_back(server.server);
      if (finding.fix) {
        const std::string& where = finding.fix->server;
        add_fix(*same, where.empty() ? server.server : where, *finding.fix);
      }
    }
  }
  // not std::ranges: clang-tidy in Debian 12 misinterprets its return value
  std::stable_partition(troubles.begin(), troubles.end(),
                        [](const Trouble& trouble) { return trouble.finding.status == CheckStatus::fail; });
  return troubles;
}

// "gpu1", "gpu1, gpu2", "8 servers (gpu1, gpu2, gpu3, …)"
std::string servers_text(const std::vector<std::string>& names) {
  if (names.size() <= 3) {
    return join(names, ", ");
  }
  return fmt::format("{} servers ({}, …)", names.size(),
                     join(std::vector<std::string>(names.begin(), names.begin() + 3), ", "));
}

// The command is on a separate line, for easy copying.
std::string fix_text(const Trouble::Mend& mend, const ui::Terminal& terminal) {
  const std::string text = visible_line(with_servers(mend.fix.text, mend.servers));
  const auto lines = [&](const std::string& where) {
    return "  " + terminal.paint_out(ui::Style::dim, where + ":") + "\n    " +
           terminal.paint_out(ui::Style::bold, text) + "\n";
  };
  switch (mend.fix.where) {
    case Fix::Where::server:
      return lines("on " + servers_text(mend.servers));
    case Fix::Where::server_as_root:
      return lines("as root on " + servers_text(mend.servers));
    case Fix::Where::here:
      return lines("here");
    case Fix::Where::advice:
      break;
  }
  return "  " + text + "\n";
}

std::string trouble_text(const Trouble& trouble, const ui::Terminal& terminal) {
  const StatusLook look = look_of(trouble.finding.status);
  std::string text = fmt::format("\n{}  {}  {}: {}\n", terminal.paint_out(look.style, look.word),
                                 terminal.paint_out(ui::Style::cyan, servers_text(trouble.servers)),
                                 trouble.finding.name, visible_line(trouble.finding.detail));
  for (const Trouble::Mend& mend : trouble.fixes) {
    text += fix_text(mend, terminal);
  }
  return text;
}

ui::Table server_rows(const CheckReport& report) {
  ui::Table table({"SERVER", "STATUS", "SUMMARY"});
  for (const ServerCheck& server : report.servers) {
    const StatusLook look = look_of(worst_of(server));
    table.add(
        {ui::Cell(server.server, ui::Style::cyan), ui::Cell(look.word, look.style), summary_of(server)});
  }
  return table;
}

ui::Table finding_rows(const CheckReport& report) {
  ui::Table table({"SERVER", "CHECK", "STATUS", "DETAIL"});
  for (const ServerCheck& server : report.servers) {
    for (const Finding& finding : server.findings) {
      const StatusLook look = look_of(finding.status);
      table.add({ui::Cell(server.server, ui::Style::cyan), finding.name, ui::Cell(look.word, look.style),
                 finding.detail});
    }
  }
  return table;
}

}  // namespace

namespace {

// The server to run the fix on.
const std::string& place_of(const ServerCheck& server, const Finding& finding) {
  return finding.fix->server.empty() ? server.server : finding.fix->server;
}

// The place and the server to run the fix on; null if there is nothing to run.
nlohmann::json fix_place(const ServerCheck& server, const Finding& finding) {
  if (!finding.fix) {
    return {{"fix_where", nullptr}, {"fix_server", nullptr}};
  }
  switch (finding.fix->where) {
    case Fix::Where::server:
      return {{"fix_where", "server"}, {"fix_server", place_of(server, finding)}};
    case Fix::Where::server_as_root:
      return {{"fix_where", "server_as_root"}, {"fix_server", place_of(server, finding)}};
    case Fix::Where::here:
      return {{"fix_where", "here"}, {"fix_server", nullptr}};
    case Fix::Where::advice:
      break;
  }
  return {{"fix_where", "advice"}, {"fix_server", nullptr}};
}

}  // namespace

nlohmann::json to_json(const CheckReport& report) {
  auto all = nlohmann::json::array();
  for (const ServerCheck& server : report.servers) {
    auto checks = nlohmann::json::array();
    for (const Finding& finding : server.findings) {
      checks.push_back({{"name", finding.name},
                        {"status", look_of(finding.status).word},
                        {"detail", finding.detail},
                        {"fix", or_null(finding.fix ? finding.fix->text : "")}});
      checks.back().update(fix_place(server, finding));
    }
    all.push_back({{"server", server.server},
                   {"ok", server.ok()},
                   {"checks", checks},
                   {"facts", server.facts ? to_json(*server.facts) : nlohmann::json::object()}});
    put_error(all.back(), server.error);
    if (report.network) {
      all.back()["facts"]["network"] = to_json(*report.network, all.size() - 1);
    }
    if (report.burn) {
      all.back()["facts"]["burn"] = to_json(*report.burn, server.server);
    }
  }
  return all;
}

std::string finding_line(const std::string& server, const Finding& finding) {
  return fmt::format("{}: {}: {}: {}", server, look_of(finding.status).word, finding.name,
                     visible_line(finding.detail));
}

std::string harmless_text(const CheckReport& report) {
  std::string text;
  for (const ServerCheck& server : report.servers) {
    for (const Finding& finding : server.findings) {
      if (finding.fix && finding.fix->where == Fix::Where::server && finding.fix->harmless) {
        text += fmt::format("{}: {}\n", place_of(server, finding), visible_line(finding.fix->text));
      }
    }
  }
  return text;
}

std::string root_scripts(const CheckReport& report) {
  std::vector<std::pair<std::string, std::string>> scripts;  // by server
  for (const ServerCheck& server : report.servers) {
    for (const Finding& finding : server.findings) {
      if (!finding.fix || finding.fix->where != Fix::Where::server_as_root) {
        continue;
      }
      const std::string& place = place_of(server, finding);
      auto script = std::ranges::find(scripts, place, &std::pair<std::string, std::string>::first);
      if (script == scripts.end()) {
        script = scripts.insert(scripts.end(), {place, ""});
      }
      const std::string command = visible_line(finding.fix->text) + "\n";
      if (script->second.find("\n" + command) == std::string::npos) {  // servers may share a command
        script->second += fmt::format("# {}: {}\n{}", finding.name, visible_line(finding.detail), command);
      }
    }
  }
  std::string text;
  for (const auto& [place, lines] : scripts) {
    text += fmt::format("\n#!/bin/sh\n# For root on {}.\n{}", place, lines);
  }
  return text;
}

std::string check_table(const CheckReport& report, const ui::Terminal& terminal, bool all) {
  std::string text = (all ? finding_rows(report) : server_rows(report)).text(terminal);
  for (const Trouble& trouble : troubles_of(report)) {
    text += trouble_text(trouble, terminal);
  }
  if (report.network && report.network->bandwidth) {
    text += bandwidth_text(*report.network, terminal);
  }
  if (report.burn) {
    text += burn_text(*report.burn, terminal);
  }
  return text;
}

}  // namespace remote::cli
