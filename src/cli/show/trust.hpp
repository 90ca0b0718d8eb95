#pragma once

#include <vector>

#include <remote/trust.hpp>

#include "ui/terminal.hpp"

namespace remote::cli {

// What a project wants of this machine, value by value, on stderr.
void show_demands(ui::Terminal& terminal, const std::vector<Demand>& demands);

}  // namespace remote::cli
