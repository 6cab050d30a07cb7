"""Random tiny configurations of encoders and encoder-decoders, and batches."""
import random

MASKED = {"bert": "BertForMaskedLM", "roberta": "RobertaForMaskedLM"}
ACTIVATIONS = ["gelu", "relu", "gelu_new", "silu", "gelu_pytorch_tanh"]


def some(rng, *values):
    return rng.choice(values)


def bert(rng, family):
    heads = some(rng, 1, 2, 3, 5)
    config = dict(
        model_type=family, vocab_size=some(rng, 23, 64, 97),
        hidden_size=heads * some(rng, 4, 7, 8),
        num_hidden_layers=some(rng, 1, 2, 3), num_attention_heads=heads,
        intermediate_size=some(rng, 13, 32),
        hidden_act=some(rng, *ACTIVATIONS), hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=some(rng, 24, 40),
        type_vocab_size=some(rng, 1, 2, 3), pad_token_id=some(rng, 0, 1, 4),
        layer_norm_eps=some(rng, 1e-12, 1e-5), initializer_range=0.05,
        tie_word_embeddings=some(rng, True, True, False))
    if rng.random() < 0.5:
        config["architectures"] = [MASKED[family]]
    else:
        config["architectures"] = [MASKED[family].replace(
            "MaskedLM", "SequenceClassification")]
        classifier(rng, config)
    return config


def classifier(rng, config):
    kind = some(rng, "one of many", "several", "regression", "plain")
    labels = 1 if kind == "regression" else some(rng, 2, 3, 5)
    config["id2label"] = {str(i): f"L{i}" for i in range(labels)}
    config["label2id"] = {f"L{i}": i for i in range(labels)}
    if kind == "several":
        config["problem_type"] = "multi_label_classification"
    if kind == "one of many":
        config["problem_type"] = "single_label_classification"


def vit(rng, family):
    heads = some(rng, 1, 2, 3, 5)
    patch = some(rng, 2, 3, 4)
    config = dict(
        model_type="vit", architectures=["ViTForImageClassification"],
        hidden_size=heads * some(rng, 4, 7, 8),
        num_hidden_layers=some(rng, 1, 2, 3), num_attention_heads=heads,
        intermediate_size=some(rng, 13, 32),
        hidden_act=some(rng, *ACTIVATIONS),
        image_size=some(rng, 12, 13, [12, 9]),
        patch_size=some(rng, patch, patch, [3, 2]),
        num_channels=some(rng, 1, 3), qkv_bias=some(rng, True, False),
        layer_norm_eps=some(rng, 1e-12, 1e-5), initializer_range=0.05)
    classifier(rng, config)
    return config


def t5(rng, family):
    config = dict(
        model_type="t5", architectures=["T5ForConditionalGeneration"],
        vocab_size=some(rng, 23, 64, 97), d_model=some(rng, 12, 20, 32),
        d_kv=some(rng, 4, 5, 8), d_ff=some(rng, 13, 32),
        num_layers=some(rng, 1, 2, 3), num_decoder_layers=some(rng, 1, 2, 3),
        num_heads=some(rng, 1, 2, 3),
        relative_attention_num_buckets=some(rng, 8, 16, 32),
        relative_attention_max_distance=some(rng, 17, 20, 128),
        dropout_rate=0.0, initializer_factor=some(rng, 0.5, 1.0),
        feed_forward_proj=some(rng, "relu", "gated-gelu", "gated-silu",
                               "gelu"),
        pad_token_id=0, decoder_start_token_id=some(rng, 0, 3))
    if rng.random() < 0.5:
        config["tie_word_embeddings"] = some(rng, True, False)
    return config


def whisper(rng, family):
    heads = some(rng, 1, 2, 3)
    return dict(
        model_type="whisper",
        architectures=["WhisperForConditionalGeneration"],
        vocab_size=some(rng, 23, 64, 97), d_model=heads * some(rng, 4, 6, 8),
        num_mel_bins=some(rng, 3, 5, 8), encoder_layers=some(rng, 1, 2, 3),
        decoder_layers=some(rng, 1, 2, 3), encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=some(rng, 13, 32),
        decoder_ffn_dim=some(rng, 11, 24),
        max_source_positions=some(rng, 6, 11), max_target_positions=24,
        activation_function=some(rng, *ACTIVATIONS), init_std=0.05,
        pad_token_id=some(rng, 0, 2), decoder_start_token_id=some(rng, 1, 3),
        bos_token_id=1, eos_token_id=2, suppress_tokens=None,
        begin_suppress_tokens=None,
        tie_word_embeddings=some(rng, True, True, False))


FAMILIES = {"bert": bert, "roberta": bert, "vit": vit, "t5": t5,
            "whisper": whisper}


def configs(family, count):
    rng = random.Random(family)
    return [FAMILIES[family](rng, family) for _ in range(count)]


def build(transformers, folder, config, **options):
    """The model of architectures[0]."""
    made = transformers.AutoConfig.from_pretrained(folder)
    return getattr(transformers, config["architectures"][0])._from_config(
        made, **options)


def labels_of(torch, config, batch, length):
    if "id2label" not in config:
        labels = torch.randint(config["vocab_size"], (batch, length))
        labels[0, length // 2:] = -100
        return labels
    count = len(config["id2label"])
    kind = config.get("problem_type")
    if kind == "multi_label_classification":
        return torch.randint(2, (batch, count)).float()
    if count == 1:
        return torch.randn(batch)
    return torch.randint(count, (batch,))


def batch_of(torch, rng, config, batch):
    """(tensors by name, sequence length, target length or None)."""
    kind = config["model_type"]
    length, target = rng.randint(2, 19), None
    tensors = {}
    if kind == "vit":
        size = config["image_size"]
        size = size if isinstance(size, list) else [size, size]
        tensors["pixel_values"] = torch.randn(
            batch, config["num_channels"], *size)
        length = 0
    elif kind == "whisper":
        tensors["input_features"] = torch.randn(
            batch, config["num_mel_bins"], 2 * config["max_source_positions"])
    else:
        tensors["input_ids"] = torch.randint(config["vocab_size"],
                                             (batch, length))
        if rng.random() < 0.6:
            mask = torch.ones(batch, length, dtype=torch.int64)
            mask[-1, max(1, length - 3):] = 0
            tensors["attention_mask"] = mask
        if kind in MASKED and rng.random() < 0.5:
            tensors["token_type_ids"] = torch.randint(
                config["type_vocab_size"], (batch, length))
    if kind == "t5":
        target = rng.randint(2, 15)
    tensors["labels"] = labels_of(torch, config, batch, target or length)
    return tensors, length, target
