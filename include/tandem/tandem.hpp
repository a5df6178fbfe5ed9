// All of Tandem's public C++ interface but for <tandem/extend.hpp>, which adds ops.
#pragma once
#include <tandem/control.hpp>
#include <tandem/data.hpp>
#include <tandem/device.hpp>
#include <tandem/dlpack.hpp>
#include <tandem/function.hpp>
#include <tandem/loss_scale.hpp>
#include <tandem/nn/layers.hpp>
#include <tandem/nn/model.hpp>
#include <tandem/nn/training.hpp>
#include <tandem/ops.hpp>
#include <tandem/precision.hpp>
#include <tandem/random.hpp>
#include <tandem/strings.hpp>
#include <tandem/tape.hpp>
#include <tandem/tensor.hpp>
#include <tandem/variable.hpp>
