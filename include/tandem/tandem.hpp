// All of Tandem's public C++ interface but for <tandem/extend.hpp>, which adds ops.
#pragma once
#include <tandem/control.hpp>
#include <tandem/data.hpp>
#include <tandem/dlpack.hpp>
#include <tandem/function.hpp>
#include <tandem/nn/layers/core.hpp>
#include <tandem/nn/model.hpp>
#include <tandem/nn/training.hpp>
#include <tandem/ops.hpp>
#include <tandem/random.hpp>
#include <tandem/tape.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>
